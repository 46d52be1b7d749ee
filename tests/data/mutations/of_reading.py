"""Refusals while files are read: archives, compression, encodings, and each format."""

from tests.data.mutations.refusal import of

RARE = "data/test_rare_refusals.py"

ARCHIVES = (
    *of(
        "data/formats/archives.py",
        "data/formats/test_archives.py",
        ("a link in a zip", "is a link or no file", "test_links_in_a_zip_are_refused"),
        ("an encrypted member", "is encrypted", "test_an_encrypted_zip_is_refused"),
        (
            "a folder of a zip that holds bytes",
            "is a folder with contents",
            "test_names_that_no_file_has_are_refused",
        ),
        (
            "bytes before, between or behind the parts of a zip",
            "Nobody would read it, so the archive is refused",
            "test_bytes_that_no_reader_of_a_zip_sees_are_refused",
        ),
        (
            "a link, device or sparse file in a tar",
            "is a link, a device or sparse",
            "test_links_and_devices_in_a_tar_are_refused",
        ),
        (
            "a second tar behind the first",
            "data follow the end of the archive",
            "test_two_tars_in_one_file_are_not_read_as_the_first",
        ),
    ),
    *of(
        "data/formats/members.py",
        "data/formats/test_archives.py",
        (
            "a member is named `../a` or `/a`",
            "has a name that leads out of the archive",
            "test_names_that_lead_out_are_refused",
        ),
        (
            "a member without a name, or named `a//b`, `a/./b`, `a\\0b`",
            "has no plain name",
            "test_names_that_no_file_has_are_refused",
        ),
        (
            "a name in a tar that is not UTF-8",
            "has a name that is not UTF-8",
            "test_a_name_that_is_not_utf8_is_refused",
        ),
        ("two members of one name", "is there twice", "test_names_that_come_twice_are_refused"),
        (
            "any of these: the whole archive is refused",
            "The archive is refused; have it packed anew",
            "test_links_in_a_zip_are_refused",
        ),
        (
            "an archive cut anywhere, between two members too",
            "damaged or cut archive",
            "test_a_tar_cut_between_members_is_found",
        ),
    ),
)

BESIDE = of(
    "data/formats/beside.py",
    "data/formats/test_whole.py",
    (
        "a row names a file that is not there",
        "file beside the row is missing",
        "test_files_beside_a_row",
    ),
    (
        "a row names a file outside, also by a link",
        "path leads out of the source",
        "test_links_beside_a_row_stay_in_the_source",
    ),
    (
        "a row names a file of gigabytes",
        "file beside the row is too large",
        f"{RARE}::test_a_file_beside_a_row_that_is_too_large",
    ),
)

COMPRESSION = of(
    "data/formats/compression.py",
    "data/formats/test_compression.py",
    (
        "a compressed file of no bytes",
        "is empty",
        "test_a_file_that_was_cut_ends_with_its_position",
    ),
    (
        "a file cut in the middle, in any member",
        "ends in the middle",
        "test_a_file_that_was_cut_ends_with_its_position",
    ),
    (
        "rubbish after the data",
        "what follows the",
        "test_what_follows_the_data_must_be_data",
    ),
    ("a changed byte", "damaged or cut", "test_any_changed_byte_of_the_data_is_found"),
    ("a file that unpacks to a terabyte", "unpacks to more than", "test_the_total_is_limited_too"),
    (
        "a decompression bomb",
        "as a decompression bomb does",
        "test_a_bomb_is_refused_before_it_fills_the_memory",
    ),
)

ENCODINGS = of(
    "data/formats/encoding.py",
    "data/formats/test_encoding.py",
    (
        "the declared encoding, and the mark of another",
        "and begins with the mark of UTF-8",
        "test_a_declared_encoding_that_is_wrong_is_refused_with_the_byte",
    ),
    (
        "bytes that do not fit the declared encoding",
        ": not ",
        "test_a_declared_encoding_that_is_wrong_is_refused_with_the_byte",
    ),
    (
        "a file declared as UTF-16 without the mark that says in which order its bytes are",
        "in which order its bytes are",
        "test_utf16_without_a_mark_is_told",
    ),
    (
        "UTF-8 first and another encoding later",
        ", though characters before it are",
        "test_utf8_before_and_something_else_after_is_refused",
    ),
    (
        "bytes that are no text, or fit several encodings equally",
        ", and no mark says what it is",
        "test_bytes_that_are_no_text_are_refused",
    ),
)

FAULTS = of(
    "data/formats/faults.py",
    "data/formats/test_lines.py",
    ("a NUL in a text, also escaped", "NUL character in text", "test_rows_that_no_sample_can_be"),
    ("half of a surrogate pair", "lone surrogate in text", "test_rows_that_no_sample_can_be"),
    ("one key twice in an object", "duplicate key in object", "test_rows_that_no_sample_can_be"),
    (
        "bytes in a Parquet column of text that are no UTF-8",
        "text that is not UTF-8",
        f"{RARE}::test_a_parquet_column_whose_texts_are_none",
    ),
    (
        "a date or time in Parquet that lies before or behind the years 1 to 9999",
        "date or time that Python has not",
        "data/formats/test_parquet.py::test_dates_that_python_has_not_reject_their_rows",
    ),
)

JSON = (
    *of(
        "data/formats/lines.py",
        "data/formats/test_lines.py",
        (
            "a line that is cut, has a comma too many, NaN, or a second value",
            "not JSON: ",
            "test_a_line_that_is_no_object_ends_the_step",
        ),
        (
            "a line that is a list, a number or null",
            "not a JSON object but ",
            "test_a_line_that_is_no_object_ends_the_step",
        ),
        (
            "a line of more than 256 MiB",
            "is longer than ",
            "test_a_huge_line_is_read_and_one_beyond_the_limit_is_refused",
        ),
    ),
    *of(
        "data/formats/items.py",
        "data/formats/test_items.py",
        (
            "a list with an item that is no object",
            "not a JSON object but ",
            "test_what_is_no_list_of_objects",
        ),
        (
            "a file that is one number or text",
            "row 1: not a JSON object",
            "test_what_is_no_list_of_objects",
        ),
        ("a list that is cut, or lacks a comma", "Expecting ", "test_what_is_no_list_of_objects"),
        (
            "something behind the list",
            "something follows the value",
            "test_what_is_no_list_of_objects",
        ),
        (
            "anything else that is no JSON, far into a file",
            "not JSON: ",
            "test_an_error_far_into_a_file_has_its_place",
        ),
        (
            "an object of rows with a name that is none",
            "Expecting a name in double quotes",
            f"{RARE}::test_keyed_rows_without_names",
        ),
        (
            "an item of more than 256 MiB",
            "a value is longer than",
            "data/formats/test_lines.py::test_a_huge_line_is_read_and_one_beyond_the_limit_is_refused",
        ),
    ),
    *of(
        "data/formats/objects.py",
        "data/formats/test_lines.py",
        (
            "values nested thousands deep",
            "nested too deeply",
            "test_a_line_that_is_no_object_ends_the_step",
        ),
        (
            "a number that no computer holds",
            "a number is too large",
            "test_a_line_that_is_no_object_ends_the_step",
        ),
    ),
    *of(
        "data/formats/nested.py",
        "data/formats/test_nested.py",
        (
            "a record without the list of its rows",
            "no items in the record",
            "test_items_are_counted_through_the_file_and_a_record_without_them_is_rejected",
        ),
        (
            "an item that is no object",
            "item is no object",
            "test_an_item_that_is_no_object_and_a_record_that_is_bad_are_rejected_alone",
        ),
    ),
)

TABLES = (
    *of(
        "data/formats/delimited.py",
        "data/formats/test_delimited.py",
        (
            "a row of more or fewer cells, which the declaration rejects",
            "more or fewer cells than columns",
            "test_ragged_rows_may_be_rejected_alone",
        ),
        ("a row of more or fewer cells", "cells where ", "test_what_is_no_table"),
        ("a NUL in a cell", "NUL character in text", "test_a_nul_rejects_its_row"),
        ("quotes that never end", "not a table: ", "test_what_is_no_table"),
        ("a table of no lines", "is empty, so its columns have no names", "test_what_is_no_table"),
        ("other columns than declared", " are declared.", "test_declared_columns_must_be_as_many"),
        ("two columns of one name", "has the name of an earlier column", "test_what_is_no_table"),
    ),
    *of(
        "data/formats/parquet.py",
        "data/formats/test_parquet.py",
        ("a Parquet file that is cut or changed", "damaged or no Parquet", "test_damaged_files"),
        ("two columns of one name", "so that one hides the other", "test_two_columns_of_one_name"),
    ),
)

XML = (
    *of(
        "data/formats/markup.py",
        "data/test_reader.py",
        (
            "an entity that reads a file or an address",
            "uses the entity ",
            "test_no_other_file_is_read_by_an_entity",
        ),
        ("an entity bomb", "has entities that grow far", "test_an_entity_bomb_is_refused"),
        (
            "a document that is cut, or has a NUL",
            "not XML: ",
            "data/formats/test_markup.py::test_a_nul_or_a_cut_document_ends_the_step",
        ),
        (
            "bytes that do not fit the encoding it states",
            "not XML: ",
            "data/formats/test_markup.py::test_bytes_that_do_not_fit_are_refused_with_their_place",
        ),
        (
            "a text, comment or attribute of more than 10 MB, elements 256 deep",
            "asks for more than is read",
            "data/formats/test_markup.py::test_a_long_text_is_read_and_a_huge_one_refused",
        ),
    ),
    *of(
        "data/formats/errorpage.py",
        "data/formats/test_lines.py",
        (
            "an HTML page named as data",
            "but an HTML page, as a server sends to report an error",
            "test_a_page_named_as_data_is_called_a_page",
        ),
    ),
)

WHOLE = (
    *of(
        "data/formats/opened.py",
        "data/formats/test_whole.py",
        (
            "a file of more than 2 GiB that is one row",
            " bytes, and a row is the whole file",
            "test_files_that_are_too_large",
        ),
    ),
    *of(
        "data/formats/whole.py",
        "data/formats/test_whole.py",
        (
            "a text of more than 256 MiB that is one row",
            " characters, and a row is the whole file",
            "test_files_that_are_too_large",
        ),
        (
            "a NUL in a text file",
            "NUL character in text",
            "test_a_text_with_a_nul_is_rejected_and_the_next_one_is_read",
        ),
    ),
    *of(
        "data/row.py",
        "data/formats/test_whole.py",
        (
            "`clean` asks a row that is no XML for its element",
            "not XML, so it has no element",
            f"{RARE}::test_what_a_row_does_not_have",
        ),
        (
            "`clean` asks a row that is no record for it",
            "so it has no record",
            "data/test_reader.py::test_a_row_is_a_whole_xml_file",
        ),
        (
            "`clean` asks a record for the bytes of its file",
            "not a plain file, so it has no content",
            f"{RARE}::test_what_a_row_does_not_have",
        ),
        ("`clean` asks bytes for their text", "so it has no string", "test_text_and_bytes"),
        (
            "`clean` asks a row of a table of ours for files beside it",
            "so nothing is beside it",
            "test_a_row_without_a_source_has_nothing_beside_it",
        ),
        (
            "`clean` asks for an image, and none are declared",
            "image in a dataset that declares none",
            "test_images_need_a_declaration",
        ),
    ),
)

REFUSALS = (*ARCHIVES, *BESIDE, *COMPRESSION, *ENCODINGS, *FAULTS, *JSON, *TABLES, *XML, *WHOLE)
