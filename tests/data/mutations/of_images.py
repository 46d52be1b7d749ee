"""Refusals of images: pictures, DICOM, slides, and what is declared of them."""

from tests.data.mutations.refusal import of

PICTURES = (
    *of(
        "data/images/pictures.py",
        "data/images/test_pictures.py",
        ("no bytes", "image without bytes", "test_what_is_no_picture"),
        ("a header that says zero by zero", "image of zero size", "test_what_is_no_picture"),
        (
            "more pixels than declared, seen before decoding",
            "image too large",
            "test_a_huge_picture_is_refused_before_it_is_decoded",
        ),
        (
            "a page or a document instead of a picture",
            "not an image of a known format",
            "test_what_is_no_picture",
        ),
        ("a picture cut anywhere", "image truncated", "test_no_cut_file_is_an_image"),
        ("a picture that begins as one and is none", "image damaged", "test_what_is_no_picture"),
    ),
    *of(
        "data/images/levels.py",
        "data/images/test_pictures.py",
        (
            "NaN or infinity among the values",
            "image with values that are no numbers",
            "test_values_that_are_no_numbers_are_refused",
        ),
    ),
)

DICOM = (
    *of(
        "data/images/dicom.py",
        "data/images/test_dicom.py",
        ("no bytes", "image without bytes", "test_no_pixels_no_file_and_no_dicom"),
        (
            "a report, plan or directory",
            "DICOM without pixel data",
            "test_no_pixels_no_file_and_no_dicom",
        ),
        (
            "a compression without a free decoder",
            "DICOM compression not supported",
            "test_a_syntax_without_codec_says_so",
        ),
        (
            "a stream of another size than the header says",
            "DICOM pixel data damaged",
            "test_a_stream_of_another_size_than_the_header_is_not_decoded",
        ),
        (
            "a header without what is needed",
            "DICOM header damaged or incomplete",
            "test_headers_that_cannot_be",
        ),
        ("a header of no rows", "image of zero size", "test_headers_that_cannot_be"),
        (
            "a header that claims too much",
            "image too large",
            "test_a_header_that_claims_too_much_is_refused_before_decoding",
        ),
        (
            "fewer pixels than the header says",
            "image truncated",
            "test_a_cut_file_or_a_broken_sequence_gives_a_reason",
        ),
        (
            "a name may be written in the pixels",
            "burned-in annotation not ruled out",
            "test_burned_in_annotation",
        ),
    ),
    *of(
        "data/images/dicom_header.py",
        "data/images/test_dicom.py",
        ("another file named as DICOM", "not DICOM", "test_no_pixels_no_file_and_no_dicom"),
        ("a deflated bomb", "image too large", "test_a_deflated_bomb_is_not_inflated"),
        (
            "a broken sequence",
            "DICOM header damaged or incomplete",
            "test_a_cut_file_or_a_broken_sequence_gives_a_reason",
        ),
    ),
)

SLIDES = (
    *of(
        "data/images/slides.py",
        "data/images/test_rows.py",
        (
            "a tile, or the level of a thumbnail, above the limit",
            "image too large",
            "test_levels_and_limits",
        ),
        (
            "a level that the slide does not have",
            "slide without the declared level",
            "test_levels_and_limits",
        ),
        ("a tile of glass", "tile of background only", "test_the_share_of_tissue_is_declared"),
        (
            "a slide cut or of an unknown format",
            "slide damaged or of an unknown format",
            "test_a_broken_slide_is_one_row",
        ),
    ),
    *of(
        "data/images/rows.py",
        "data/images/test_rows.py",
        (
            "a compressed slide",
            "slide damaged or of an unknown format",
            "test_the_reader_takes_frames_from_packed_files_too",
        ),
    ),
)

SAMPLES = of(
    "data/clean.py",
    "data/test_shared_images.py",
    (
        "a sample shows an image, and none are declared",
        "an image in a dataset that declares none",
        "test_an_image_needs_a_policy_and_its_bytes",
    ),
    (
        "a sample names an image that it does not give",
        "an image that is named and not given",
        "test_an_image_needs_a_policy_and_its_bytes",
    ),
)

POLICY = of(
    "data/images/policy.py",
    "data/images/test_policy.py",
    (
        "a size below the smallest",
        "write a whole number from",
        "test_what_makes_no_sense_is_refused",
    ),
    (
        "a share of tissue above 1",
        "write a share between 0 and 1",
        "test_what_makes_no_sense_is_refused",
    ),
    ("a window without a width", "write (centre, width)", "test_what_makes_no_sense_is_refused"),
    (
        "allowed files that are no list of paths",
        "write a list of paths inside the source",
        "test_what_makes_no_sense_is_refused",
    ),
)

REFUSALS = (*PICTURES, *DICOM, *SLIDES, *SAMPLES, *POLICY)
