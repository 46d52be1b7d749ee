"""Refusals of sources, mirrors and deliveries."""

from tests.data.mutations.refusal import of

RARE = "data/test_rare_refusals.py"
CHANGED = "test_a_changed_snapshot_is_refused"
UNUSABLE = "test_a_statement_that_cannot_be_used_is_told"

GIT = of(
    "data/fetch/git.py",
    "data/test_git.py",
    (
        "a server that is not there, or wants a password",
        "could not be fetched",
        "test_nothing_there",
    ),
    ("a revision that is not in the history", "has no commit", "test_an_unknown_revision_is_told"),
    (
        "a path `../a` in a tree",
        "which leaves it",
        f"{RARE}::test_a_repository_with_a_path_that_leaves_it",
    ),
    (
        "a pointer of Git LFS instead of a file",
        "is kept in Git LFS",
        "test_a_pointer_into_lfs_is_refused",
    ),
)

HTTP = of(
    "data/fetch/http.py",
    "data/test_http.py",
    ("404, 403, 401", "Is the address right?", "test_a_lasting_refusal_is_told_at_once"),
    ("a server that is not there or breaks off", "could not be fetched in", "test_nobody_there"),
    (
        "a file of another hash",
        "is not the file that was declared",
        "test_another_hash_leaves_no_file",
    ),
    ("a mirror that is a folder", "is no file", "test_a_mirror_is_held_to_the_same_hash"),
)

PACKAGES = of(
    "data/fetch/package.py",
    "data/test_package.py",
    (
        "a wheel of another hash",
        "has another sha256 than the declared",
        "test_another_hash_is_refused",
    ),
    (
        "a version or package that there is not",
        "Check name and version",
        "test_an_unknown_version_is_told",
    ),
    ("an index that is not there", "could not be fetched from", "test_no_way_to_the_index_is_told"),
)

HUB = of(
    "data/fetch/hub.py",
    "data/test_hub.py",
    (
        "a path that leaves the repository",
        "which leaves it",
        "test_a_path_that_leaves_the_repository_is_refused",
    ),
    (
        "a private or missing repository",
        "FACTORY_MIRRORS can name a local copy",
        "test_refusals_are_told_without_the_token",
    ),
    (
        "a snapshot of another commit",
        ", declared is ",
        "test_a_snapshot_of_another_commit_is_refused",
    ),
    (
        "a folder that is no snapshot",
        "nothing is recorded in",
        "test_a_folder_without_records_is_told",
    ),
    ("a snapshot that lacks a file", "is not there, but ", CHANGED),
    (
        "a file of another hash than listed",
        "is not what ",
        "test_another_content_than_listed_is_refused",
    ),
)

STORES = of(
    "data/fetch/objects.py",
    "data/test_objects.py",
    (
        "an object of another hash",
        "is not the file that was declared",
        "test_another_content_is_refused_and_not_kept",
    ),
    (
        "a store that sends more than was asked for",
        "sends other parts of",
        f"{RARE}::test_a_store_that_sends_more_than_was_asked_for",
    ),
    (
        "an object that is not there",
        "Check the address and the path",
        "test_a_missing_object_is_told",
    ),
    (
        "an object that may not be read",
        "may not be read with the credentials",
        "test_access_denied_is_told_without_saying_who",
    ),
    (
        "no credentials",
        "needs credentials that this environment does not have",
        "test_no_credentials_are_told",
    ),
    ("a store that is not there", "could not be fetched in", "test_nobody_listens"),
    (
        "a store of an unknown protocol",
        "is of a protocol that fsspec does not know",
        "test_a_store_that_nothing_reads",
    ),
    (
        "a manifest that `sha256sum` did not write",
        "not a sha256, two spaces and a path",
        "test_a_manifest_that_cannot_be_used",
    ),
)

MIRRORS = (
    *of(
        "data/fetch/mirrors.py",
        "data/test_mirrors.py",
        ("a copy that is not there", "which is not there", "test_a_copy_that_is_not_there_is_told"),
        ("no file of mirrors", "which cannot be read", "test_a_missing_file_is_told"),
        ("a file of mirrors that is no TOML", "which is not TOML", "test_anything_else_is_refused"),
        (
            "another table than mirrors",
            "it may hold one table, [mirrors]",
            "test_anything_else_is_refused",
        ),
        ("a mirror that is a number", "is not a path", "test_anything_else_is_refused"),
    ),
    *of(
        "data/fetch/file_mirror.py",
        "data/test_file_mirror.py",
        (
            "a mirror of another revision, or of none",
            "Mirror that one and write pin =",
            "test_a_mirror_of_another_revision_is_refused",
        ),
        (
            "a mirror of some files that does not say partial",
            "Add them, or write partial = true",
            "test_a_download_is_held_to_its_declared_hash_too",
        ),
        (
            "a path that leaves the mirror, also by a link",
            "Files of a mirror lie below its root",
            "test_a_path_that_leaves_the_mirror_is_refused",
        ),
        (
            "a file that the mirror names and lacks",
            "which is not there",
            "test_a_file_that_is_not_there_is_told",
        ),
        (
            "a copy that does not unpack",
            "cannot be gunzipped",
            "test_a_copy_that_does_not_unpack_is_told",
        ),
        (
            "a copy with another content, also under gzip",
            "than the source: its hash is",
            "test_another_content_is_refused",
        ),
        ("a statement with two lines for a file", "is there twice", UNUSABLE),
        ("a statement with the path `../a`", "is no path inside a source", UNUSABLE),
        ("a statement with a file inside a file", " is a file, and ", UNUSABLE),
        ("a statement that is no TOML, or lacks a hash", "docs/mirrors.md has its form", UNUSABLE),
    ),
)

FILES = (
    *of(
        "data/raw.py",
        "data/test_git.py",
        (
            "no file fits the pattern",
            "No file of the source fits the row pattern",
            "test_a_pattern_that_fits_nothing_lists_what_there_is",
        ),
        (
            "a link out of the source",
            "is a link that leads out of the source",
            "test_links_inside_are_files_and_links_outside_are_refused",
        ),
    ),
    *of(
        "data/raw.py",
        "data/test_raw.py",
        (
            "a file of the pattern that is a link to nothing, a pipe or a device",
            "is a link to nothing, a pipe or a device, and not a file",
            "test_a_link_to_nothing_and_a_pipe_are_not_left_out_in_silence",
        ),
        (
            "a file whose name is not UTF-8",
            "is no name in UTF-8",
            "test_a_name_that_is_not_utf8_is_told",
        ),
        (
            "a folder that this account may not read",
            "so what is in it would be missing",
            "test_a_folder_that_cannot_be_read_is_told",
        ),
    ),
    *of(
        "data/fetch/closed.py",
        "data/test_closed.py",
        (
            "a public source in the namespace or the drop zone, by its address or a link",
            "where private data may lie, and the source is public",
            "test_a_store_with_a_link_there",
        ),
    ),
    *of(
        "data/fetch/local.py",
        "data/test_dataset.py",
        (
            "drops that nobody configured",
            "because FACTORY_DROPS is not set",
            "test_absent_drop_folder_fails_only_when_the_step_runs",
        ),
        (
            "a drop folder that is a link, out or to another one",
            "Declare the folder itself.",
            "data/test_closed.py::test_a_drop_folder_that_is_another_name_of_one",
        ),
        (
            "a drop folder that is not there",
            "Has the partner delivered",
            "test_absent_drop_folder_fails_only_when_the_step_runs",
        ),
        (
            "a drop folder of another account",
            "cannot be read by this account",
            f"{RARE}::test_a_drop_folder_of_another_account",
        ),
    ),
    *of(
        "data/making.py",
        RARE,
        (
            "files that change while they are copied",
            "changed while it was read",
            "test_a_drop_folder_that_changes_while_it_is_read",
        ),
    ),
)

DELIVERIES = (
    *of(
        "data/identifiers/statement.py",
        "data/identifiers/test_statement.py",
        (
            "no statement, or a link in its place",
            "so nothing says what it is and how it was pseudonymized",
            "test_no_statement",
        ),
        (
            "a statement of megabytes",
            "it is not read.",
            f"{RARE}::test_a_statement_that_is_far_too_long",
        ),
        (
            "a statement that is no JSON, or has a key twice",
            "The delivery is not read.",
            "test_what_is_no_statement",
        ),
        (
            "a statement that is unsigned, of the future or before 1990, or lacks a field",
            "is no complete, signed statement",
            "test_incomplete_statements",
        ),
        (
            "a prefix of pseudonyms that real numbers are written with, as `MRN`",
            "is no complete, signed statement",
            "test_a_prefix_that_would_excuse_real_numbers",
        ),
    ),
    *of(
        "data/identifiers/verify.py",
        "data/test_partner.py",
        (
            "a file more, fewer, or another than stated",
            "The delivery is not what its statement says",
            "test_other_files_than_stated",
        ),
        (
            "a link or a pipe among the files",
            "The delivery is not what its statement says",
            "data/identifiers/test_statement.py::test_links_and_pipes",
        ),
        (
            "a folder of the copy that cannot be read",
            "so it is not known whether ",
            "data/identifiers/test_statement.py::test_a_folder_that_cannot_be_read",
        ),
    ),
    *of(
        "data/identifiers/text.py",
        "data/test_partner.py",
        (
            "a text that a recognizer cannot read",
            "so that text counts as unread",
            "test_a_failing_recognizer",
        ),
    ),
    *of(
        "data/fetch/partner.py",
        "data/test_partner.py",
        (
            "more identifiers in texts or headers than allowed",
            "The delivery holds identifiers",
            "test_a_blocked_delivery_publishes_nothing_and_says_where",
        ),
        (
            "names, and no surrogates were used",
            "The delivery holds identifiers",
            "test_names_block_where_no_surrogates_were_used",
        ),
        (
            "a folder of the delivery that cannot be read",
            "so what is in it would be missing",
            "data/identifiers/test_statement.py::test_a_folder_that_cannot_be_read",
        ),
        (
            "identifiers in a file out of which no row can be taken",
            "so nothing of the delivery is published",
            "test_a_row_that_cannot_be_taken_out_refuses_the_delivery",
        ),
        (
            "a delivery that changes while it is copied",
            "changed while it was read",
            "test_a_delivery_that_changes_while_it_is_copied",
        ),
        (
            "a file exchanged for a link at the last moment",
            "Is a delivery under way, and may this account read it?",
            f"{RARE}::test_a_file_of_a_delivery_that_is_exchanged_for_a_link",
        ),
    ),
    *of(
        "data/fetch/staging_area.py",
        "data/test_partner.py",
        (
            "a state directory inside the namespace",
            "a delivery would be in it before it is scanned",
            "test_a_state_directory_inside_the_namespace_is_refused",
        ),
        (
            "a state directory that is a file",
            "where a delivery cannot be staged",
            f"{RARE}::test_a_delivery_with_nowhere_to_be_staged",
        ),
    ),
)

REFUSALS = (*GIT, *HTTP, *PACKAGES, *HUB, *STORES, *MIRRORS, *FILES, *DELIVERIES)
