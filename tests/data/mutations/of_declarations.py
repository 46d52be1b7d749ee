"""Refusals of declarations: datasets, rows, sources, keys, mixes, and where they lie."""

from tests.data.mutations.refusal import of

RARE = "data/test_rare_refusals.py"
WRONG = "test_a_wrong_declaration_is_refused_when_it_is_made"
STORE = "test_what_cannot_be_declared"
ROWS = f"{RARE}::test_rows_that_cannot_be_declared"
FILE = "test_a_file_that_cannot_be_used_is_named"

DATASETS = of(
    "data/dataset.py",
    "data/test_dataset.py",
    (
        "a public key with a private source",
        "so it must be private.",
        "test_public_key_with_private_source_is_refused",
    ),
    (
        "a private key, and everything read is public",
        "is private although everything it reads is public",
        "test_private_key_with_public_source_must_be_meant",
    ),
    (
        "private on purpose where that goes without saying",
        "Leave it out.",
        "test_private_key_with_public_source_must_be_meant",
    ),
    ("a licence that is empty, or no SPDX expression", "is no SPDX expression", WRONG),
    (
        "errors allowed for half a row",
        "write a share of the rows between 0 and 1, or a whole number of rows",
        WRONG,
    ),
    (
        "a text in the place of a source, images or loss",
        ", which is none. Write ",
        "data/test_discovery.py::test_a_value_of_the_wrong_type_is_named_with_its_file",
    ),
    ("a split with a share of 0", "every share in split must be above 0", WRONG),
    ("shares that are not 1 together", "the shares of split add up to", WRONG),
    ("two checks of one name", "Give one of them another name", WRONG),
    (
        "a role that there is not",
        "write 'training' or 'benchmark'",
        "training/test_mix.py::test_benchmarks_and_they_alone_lie_in_their_part_of_the_tree",
    ),
    (
        "a benchmark beside the other datasets, or a dataset among benchmarks",
        "Benchmarks, and they alone, lie below",
        "training/test_mix.py::test_benchmarks_and_they_alone_lie_in_their_part_of_the_tree",
    ),
    (
        "a dataset derived from a benchmark",
        "on a benchmark. Declare it as a benchmark",
        "training/test_mix.py::test_what_is_derived_from_a_benchmark_is_one",
    ),
)

PARTS = (
    *of(
        "data/checks.py",
        "data/test_dataset.py",
        (
            "a check with a name of two words",
            "write letters, digits and '_'",
            f"{RARE}::test_a_check_with_a_name_that_cannot_be_shown",
        ),
        ("bounds the wrong way round", "the bounds must be whole numbers, 0 <= low <= high", WRONG),
        (
            "a check of rejections without a reason, or for a number",
            "write the reason for which `clean` rejects rows",
            f"{RARE}::test_a_check_of_a_reason_that_no_row_has",
        ),
        ("a share above 1", "a share lies between 0 and 1", WRONG),
    ),
    *of(
        "data/loss.py",
        "data/test_loss.py",
        (
            "tool calls that carry half a loss",
            "write True or False",
            "test_tool_calls_are_in_or_out",
        ),
        ("one text in the place of a list of parts", "write a list of", "test_parts_are_a_list"),
        (
            "a role that no sample has",
            "so nothing of it could carry loss",
            "test_a_part_that_is_none_is_an_error_of_the_declaration",
        ),
    ),
    *of(
        "data/dedup_policy.py",
        "data/dedup/test_outcome.py",
        (
            "a threshold at which everything is alike",
            "Use 0.3 to 1",
            "test_senseless_policies_are_refused",
        ),
        (
            "a number of `Dedup` that is none",
            "or leave ",
            "data/test_dataset.py::test_a_policy_of_another_type_is_told",
        ),
        (
            "shingles of no words",
            "use 1 to 64 tokens and 1 to 16 rows",
            "test_senseless_policies_are_refused",
        ),
    ),
    *of(
        "data/packing/packing.py",
        "data/test_packing.py",
        (
            "a context of no tokens",
            "it is a number above 0",
            "test_parameters_that_make_no_sense_are_refused",
        ),
        (
            "a seed below 0",
            "it is 0 or a number above 0",
            "test_parameters_that_make_no_sense_are_refused",
        ),
        (
            "a context that the ranks cannot share",
            "could not be divided among the ranks",
            "test_parameters_that_make_no_sense_are_refused",
        ),
        (
            "a regime that there is not",
            "write one of",
            "test_parameters_that_make_no_sense_are_refused",
        ),
    ),
)

ROW_FORMS = of(
    "data/row_form.py",
    "data/test_dataset.py",
    (
        "an encoding, delimiter, quote or ratio that is none",
        "Write an encoding that Python knows",
        ROWS,
    ),
    ("XML in an encoding that its parser does not know", "in which no XML can be read", ROWS),
    ("a field of `Rows` of another type", "docs/formats.md has the fields", ROWS),
    ("columns or files beside that are no texts", "Write texts, ", ROWS),
    ("a format that there is not", "or leave the format out", ROWS),
    ("a table without names of columns", "header=False leaves the columns without names", ROWS),
)

PATTERNS = of(
    "data/pattern.py",
    "data/test_dataset.py",
    ("the pattern `../*`", "names no files inside the source", WRONG),
    ("elements of files that have none", "asks for elements of files that are not XML", WRONG),
    ("tiles inside an archive", "asks for parts of images inside an archive", ROWS),
    (
        "members of an archive that lies in an archive",
        "reaches into an archive within an archive",
        ROWS,
    ),
    (
        "members of a file that is no archive",
        "asks for members of files that are no archives",
        ROWS,
    ),
)

SOURCES = (
    *of(
        "data/source_files.py",
        "data/test_objects.py",
        ("the folder `/etc` or `../x`", "not absolute, not empty, no '..'", STORE),
        ("a classification that there is not", "write 'public' or 'private'", STORE),
        (
            "a revision or hash that is cut short",
            "cannot be used; write ",
            "data/test_hub.py::test_what_cannot_be_declared",
        ),
    ),
    *of(
        "data/sources.py",
        "data/test_dataset.py",
        (
            "a kind of repository that there is not",
            "is not 'dataset', 'model' or 'space'",
            "data/test_hub.py::test_what_cannot_be_declared",
        ),
        ("the address `file:///etc/passwd`", "is not an http or https address", WRONG),
        ("derived from nothing", "names no dataset to derive from", WRONG),
    ),
    *of(
        "data/stores.py",
        "data/test_objects.py",
        ("an address with a password", "credentials are taken from the environment", STORE),
        ("objects without hashes, or with two kinds", "one of the two.", STORE),
        ("rows in none of the files", "no declared file fits the rows", STORE),
        ("S3 at an address of another store", "is not of S3", STORE),
    ),
)

PLACES = (
    *of(
        "discovery/files.py",
        "data/test_discovery.py",
        (
            "no definitions on this machine",
            "cannot be imported, so nothing is declared",
            f"{RARE}::test_no_definitions_at_all",
        ),
        (
            "a declaration where nothing looks for it",
            "declares nothing here",
            "test_a_declaration_where_nothing_looks_for_it",
        ),
        ("a file that Python cannot read", " cannot be imported: ", FILE),
        (
            "a helper, or a file of jobs, that is no Python",
            "cannot be read as Python",
            "test_a_helper_that_is_no_python_is_named",
        ),
    ),
    *of(
        "discovery/__init__.py",
        "data/test_discovery.py",
        (
            "the lock of a mix that is not declared",
            "locks a mix that is not declared",
            "training/test_mix.py::test_a_lock_without_its_mix_is_named",
        ),
        (
            "several declarations that are wrong: all are told",
            "declarations cannot be used",
            "test_every_problem_is_told_at_once",
        ),
        (
            "a benchmark's files under another name",
            "so training on it would be training on the benchmark",
            "test_what_a_benchmark_reads_is_trained_on_under_no_other_name",
        ),
        (
            "one folder as public here and as private there",
            "so both must be private",
            "test_a_folder_that_is_private_for_one_is_private_for_all",
        ),
        (
            "a file with no mix, or with two",
            "a file declares the one mix of its name",
            "training/test_mix.py::test_a_file_that_does_not_declare_one_mix_is_named",
        ),
        (
            "a mix of another name than its file",
            "but a mix has its file's name",
            "training/test_mix.py::test_a_file_that_does_not_declare_one_mix_is_named",
        ),
        ("a file without a dataset", "declares no dataset", FILE),
        ("a key that is not the path", "but a file's path is its key", FILE),
        ("a dataset declared twice", "Keep one of them", FILE),
    ),
    *of(
        "keys.py",
        "data/test_keys.py",
        (
            "a key of neither tree",
            "a key starts with public/ or private/",
            "test_paths_that_are_no_keys",
        ),
        (
            "nothing to derive a classification from",
            "has no inputs to derive a classification from",
            "test_derive_without_inputs",
        ),
        (
            "a key too long for file systems",
            "characters; file systems allow",
            "test_the_longest_key",
        ),
        (
            "upper case, dots, `..` in a key",
            "a segment is one or more of a-z, 0-9 and _",
            "test_segments_that_no_key_has",
        ),
        (
            "a part of a key that is too long",
            "characters; the limit is",
            "test_the_longest_segment",
        ),
        ("a key in the place of runs", "which holds run directories", "test_the_reserved_segment"),
    ),
    *of(
        "data/template.py",
        "data/test_template.py",
        (
            "a new dataset named as a word of Python",
            "a Python module cannot be named",
            "test_a_key_that_no_module_can_have",
        ),
        (
            "a kind of data that has no template",
            "There is no template for",
            "test_a_kind_without_template_is_answered_with_those_that_there_are",
        ),
    ),
)

MIXES = of(
    "data/mix_rules.py",
    "training/test_mix.py",
    (
        "a mix of nothing",
        "A mix without datasets trains nothing",
        "test_a_mix_has_datasets_and_each_once",
    ),
    (
        "a weight of 0, below, or no number",
        "a weight is a finite number above 0",
        "test_a_weight_is_a_finite_number_above_zero",
    ),
    (
        "a benchmark in a mix",
        "Take it out of the mix",
        "test_a_benchmark_is_cleaned_and_no_more_and_no_mix_takes_it",
    ),
    (
        "a dataset twice in a mix",
        "Give it one purpose and one weight",
        "test_a_mix_has_datasets_and_each_once",
    ),
    ("a role that is no list", "write a list of datasets with weights", "test_a_role_is_a_list"),
    (
        "an entry of a mix that is no weight with a dataset",
        "write a weight and a dataset",
        "test_an_entry_is_a_weight_and_a_dataset",
    ),
    (
        "weight and dataset in the wrong order",
        "Write the weight first, then the dataset",
        "test_an_entry_is_a_weight_and_a_dataset",
    ),
    (
        "epochs of 0, below, or no number",
        "write how often its samples",
        "test_caps_and_overflow_name_the_dataset_the_field_and_what_is_allowed",
    ),
    (
        "a cap that is no share",
        "write a share of the stream",
        "test_caps_and_overflow_name_the_dataset_the_field_and_what_is_allowed",
    ),
    ("an overflow or a basis that there is not", "; write one of", "test_a_basis_is_one_of_three"),
    (
        "a stage that begins with no step",
        "write the number of the step",
        "test_a_stage_names_its_field_and_what_is_allowed",
    ),
    (
        "a context of no tokens",
        "write how many tokens a sequence has",
        "test_a_stage_names_its_field_and_what_is_allowed",
    ),
    (
        "weights of a stage that are none",
        "the weights that differ, by key",
        "test_a_stage_names_its_field_and_what_is_allowed",
    ),
    (
        "a weight in a stage for what is no key",
        "which is no key",
        "test_a_stage_names_its_field_and_what_is_allowed",
    ),
    (
        "a weight in a stage below 0, or no number",
        "0 pauses the dataset",
        "test_a_stage_names_its_field_and_what_is_allowed",
    ),
    (
        "stages that are none",
        "write a list of Stage",
        "test_stages_follow_one_another_and_contexts_only_grow",
    ),
    (
        "stages out of order",
        "The stages begin with the steps",
        "test_stages_follow_one_another_and_contexts_only_grow",
    ),
    (
        "a context that shrinks",
        "Contexts only grow",
        "test_stages_follow_one_another_and_contexts_only_grow",
    ),
    (
        "a stage that weights a dataset outside the mix",
        "which is not in the mix",
        "test_stages_follow_one_another_and_contexts_only_grow",
    ),
    (
        "a stage without a dataset",
        "pauses every dataset",
        "test_stages_follow_one_another_and_contexts_only_grow",
    ),
    (
        "a dataset that no stage reads",
        "has the weight 0 in every stage",
        "test_stages_follow_one_another_and_contexts_only_grow",
    ),
    (
        "caps that cannot fill a stage",
        "cannot be filled",
        "test_caps_that_cannot_fill_a_stage_are_named",
    ),
)

REFUSALS = (*DATASETS, *PARTS, *ROW_FORMS, *PATTERNS, *SOURCES, *PLACES, *MIXES)
