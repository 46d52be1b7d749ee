"""Refusals while steps run, in the namespace, and at the gate of a run."""

from tests.data.mutations.refusal import of

RARE = "data/test_rare_refusals.py"

STEPS = (
    *of(
        "data/clean.py",
        "data/test_odd_rows.py",
        (
            "`clean` returns half of a surrogate pair",
            "lone surrogate in text",
            "test_a_surrogate_that_clean_makes",
        ),
        ("`clean` returns a NUL", "NUL character in text", "test_a_nul_that_clean_makes"),
        (
            "`clean` raises on more rows than allowed",
            "max_errors allows",
            "data/test_dataset.py::test_too_many_errors_fail_the_step_and_name_the_first",
        ),
    ),
    *of(
        "data/run.py",
        "data/test_dataset.py",
        (
            "a template that is not filled in",
            "is not filled in yet",
            "data/test_template.py::test_it_loads_and_names_its_holes_when_run",
        ),
        (
            "a step before the one that it reads",
            "which has no current version",
            "test_a_step_without_its_input_says_what_to_do",
        ),
        (
            "an input whose files were changed after it was made",
            "so nothing is made from it.",
            "test_a_damaged_input_is_not_read_and_its_repair_makes_all_well",
        ),
    ),
    *of(
        "data/dedup/local.py",
        "data/dedup/test_outcome.py",
        (
            "a document without an id or a text",
            "is missing or has a null among",
            "test_null_is_refused",
        ),
    ),
    *of(
        "data/dedup/order.py",
        "data/dedup/test_outcome.py",
        (
            "signatures of another policy",
            "signatures would not be comparable",
            "test_tables_of_another_policy_are_refused",
        ),
        (
            "one id on two documents",
            "Make ids unique before deduplication",
            "test_repeated_id_is_refused",
        ),
    ),
    *of(
        "data/split.py",
        "data/test_split.py",
        (
            "fewer groups than splits",
            "each split needs a group",
            "test_too_few_groups_for_the_splits",
        ),
    ),
    *of(
        "data/energon.py",
        "data/test_energon.py",
        (
            "two samples that would have one entry",
            "ids must differ",
            "test_two_samples_with_one_id_are_refused",
        ),
        (
            "shards of which Energon makes no index",
            "Energon could not prepare",
            f"{RARE}::test_shards_that_energon_cannot_prepare",
        ),
    ),
    *of(
        "data/phases.py",
        RARE,
        (
            "finished work that disappears",
            "is gone although it was finished",
            "test_finished_work_that_disappears",
        ),
    ),
    *of(
        "data/engines/__init__.py",
        "data/test_engines.py",
        ("an engine that there is not", "There is no engine", "test_an_engine_that_is_none"),
    ),
    *of(
        "data/engines/reports.py",
        "data/test_engines.py",
        (
            "a worker that fails in a way that nobody foresaw",
            "Shard ",
            "test_nothing_of_a_row_reaches_ray_and_errors_come_back",
        ),
    ),
    *of(
        "data/engines/ray.py",
        "data/test_engines.py",
        (
            "workers that die again and again",
            "Ray could not finish the shards",
            "test_nothing_of_a_row_reaches_ray_and_errors_come_back",
        ),
    ),
    *of(
        "data/differences/holdings.py",
        "data/differences/test_differences.py",
        (
            "a comparison with a damaged version",
            "so it cannot be compared",
            "test_a_damaged_table_is_named_without_a_word_of_it",
        ),
    ),
)

VERSIONS = (
    *of(
        "namespace/attempts.py",
        "namespace/test_attempts.py",
        (
            "a second driver of the same attempt of a run",
            "has a driver already",
            "test_a_second_driver_of_the_same_attempt_is_refused_and_told_who_has_it",
        ),
        (
            "a driver whose attempt was replaced",
            "so nothing that it writes counts any more",
            "test_attempts_follow_each_other",
        ),
    ),
    *of(
        "namespace/classification.py",
        "namespace/test_classification.py",
        (
            "private data on their way to a public path",
            "so it must be private.",
            "test_a_private_input_and_a_public_key",
        ),
    ),
    *of(
        "namespace/integrity.py",
        "namespace/test_integrity.py",
        (
            "a link, a pipe or a name of ours among the files",
            "cannot be published",
            "test_what_cannot_be_published",
        ),
        (
            "a file taken over that is damaged",
            "was taken over from elsewhere and is not what was written there",
            "namespace/test_work.py::test_damage_is_not_shared",
        ),
    ),
    *of(
        "namespace/layout.py",
        "namespace/test_versions.py",
        (
            "a key above others",
            "other keys lie below it",
            "test_a_key_is_not_a_directory_of_another",
        ),
        (
            "a key inside a version",
            "it would be a directory inside them",
            "test_below_a_key_that_is_published_but_not_current",
        ),
        (
            "a root that is missing or a file",
            "Mount it, create it with `mkdir -p`",
            "namespace/test_failures.py::test_the_root_is_missing",
        ),
    ),
    *of(
        "namespace/lock.py",
        "namespace/test_lock.py",
        (
            "a writer that lost its lock",
            "this process lost its lock",
            "test_an_owner_that_lost_its_lease_cannot_publish",
        ),
    ),
    *of(
        "namespace/manifest.py",
        "namespace/test_versions.py",
        (
            "a manifest that is cut, missing or of another version",
            "so nothing says what the version holds",
            "test_worse_damage_is_replaced_too",
        ),
    ),
    *of(
        "namespace/pins.py",
        "namespace/test_retention.py",
        (
            "an input that is removed as a step begins",
            "is gone: `factory gc` removed it a moment ago",
            "test_a_step_does_not_begin_on_a_version_that_is_gone",
        ),
    ),
    *of(
        "namespace/promotion.py",
        "namespace/test_versions.py",
        (
            "a link to the current version that somebody else made",
            "Only the factory may make it",
            "test_a_link_that_the_factory_did_not_make",
        ),
        (
            "a current version that is gone",
            "is gone from",
            "test_a_current_version_that_is_gone_is_an_error_not_nothing",
        ),
        (
            "a limited version becomes current",
            "rows only, so it cannot become current",
            "test_a_limited_version_never_becomes_current",
        ),
        (
            "a version becomes current that failed a check, or lacks one",
            "The current version stays",
            "test_promotion_names_the_checks_that_are_missing",
        ),
        (
            "a version becomes current that lost files",
            "has lost files since it was published",
            "test_promotion_refuses_a_version_that_lost_files",
        ),
        (
            "a rollback to a damaged version",
            "Choose another version, or materialize the key again",
            "test_rollback_verifies_then_repoints",
        ),
    ),
    *of(
        "namespace/staging.py",
        "namespace/test_versions.py",
        (
            "a version described twice",
            "was described twice in one write",
            "test_described_twice_or_not_at_all",
        ),
        (
            "a version asked for before it is there",
            "is published when its `write` block ends",
            "test_a_version_is_there_when_the_block_has_ended",
        ),
        (
            "a version that nobody described",
            "was written but not described",
            "test_described_twice_or_not_at_all",
        ),
        (
            "a version of no files",
            "so there is nothing to publish",
            "test_a_first_write_that_fails_leaves_no_directories",
        ),
        (
            "facts that JSON cannot hold",
            "was described with what JSON cannot hold",
            "test_values_that_json_cannot_hold_are_refused_without_being_quoted",
        ),
        (
            "one id with two statements",
            "keeping the old statement would be untrue",
            "test_one_id_with_two_statements_is_refused",
        ),
    ),
    *of(
        "namespace/tree.py",
        "namespace/test_versions.py",
        ("a limit of 0 rows", "it starts at 1", "test_a_limit_starts_at_one"),
        (
            "a version that there is not",
            "has no version ",
            "test_versions_newest_first_and_unknown_ones_named",
        ),
        (
            "an input that is not what it is called",
            "cannot be an input",
            "namespace/test_classification.py::test_an_input_is_what_its_directory_holds_not_what_it_is_called",
        ),
        (
            "two versions of one key as inputs",
            "One key is an input twice",
            "namespace/test_classification.py::test_one_version_of_a_key_is_an_input",
        ),
    ),
)

RUNS = (
    *of(
        "namespace/run_files.py",
        "namespace/test_checkpoints.py",
        (
            "a checkpoint of a public run that is a link to a private one",
            "is a link, or not of the kind that belongs there",
            "test_a_public_run_goes_on_from_no_private_checkpoint",
        ),
        (
            "a file of a run that would fill the memory",
            "so it is not read",
            "namespace/test_run_files.py::test_a_file_is_read_whole_up_to_its_limit",
        ),
    ),
    *of(
        "namespace/runs.py",
        "namespace/test_runs.py",
        (
            "a run of another classification",
            "A run is public or private",
            "test_a_classification_that_there_is_not",
        ),
        ("an id with a slash or dots", "cannot be a directory", "test_ids_that_no_run_can_have"),
        ("a line with a line break in it", "append one by one", "test_append_and_directory"),
        (
            "a file of a run is written twice",
            "a run never replaces a file",
            "test_create_never_replaces",
        ),
        (
            "a link planted in a run",
            "Only what the run made itself is written to",
            "test_a_link_planted_in_a_public_run_is_not_followed",
        ),
        ("a run that nobody opened", "open it first", "test_a_run_that_is_not_there"),
        ("one run in both trees", "already; it cannot be ", "test_a_run_is_not_in_both_trees"),
        (
            "a run that there is not",
            "`factory runs list` shows those there are",
            "test_a_run_that_is_not_there",
        ),
        (
            "a name `../a` inside a run",
            "and there is no way up",
            "test_names_that_lead_out_are_refused",
        ),
    ),
    *of(
        "namespace/references.py",
        "namespace/test_retention.py",
        (
            "no definitions, whose locks name versions",
            "is not a folder, so nobody can say",
            "test_a_missing_folder_of_definitions_stops_it",
        ),
        (
            "a run record that is cut",
            "is cut off or damaged, so nobody can say",
            "test_a_damaged_run_record_stops_it",
        ),
        (
            "a tree that this account may not read",
            "so nobody can say which versions it needs",
            "test_an_account_that_may_not_read_everything_is_refused",
        ),
    ),
    *of(
        "namespace/sweep.py",
        "namespace/test_sweep.py",
        (
            "a directory that this account may not list",
            "may not be listed by this account",
            "namespace/test_retention.py::test_an_account_that_may_not_read_everything_is_refused",
        ),
    ),
)

GATE = of(
    "control/gates.py",
    "control/test_gates.py",
    (
        "a dataset that is not materialized",
        "is not materialized: nothing is current there",
        "test_everything_wrong_is_listed_at_once",
    ),
    (
        "a failed check, of any version upstream",
        ": check ",
        "test_failed_check_upstream_and_then_a_later_run",
    ),
    ("a check declared since", "(not run)", "test_check_added_to_the_declaration_must_have_run"),
    (
        "a check whose code or bounds changed since",
        "checked by an older form of the check",
        "control/test_outdated_checks.py::test_the_gate_sees_it_and_pins_what_it_lets_through",
    ),
    (
        "a limited version, which never becomes current",
        "is not materialized: nothing is current there",
        "test_limited_run_and_then_a_mix",
    ),
    ("a partial version", "is PARTIAL", "test_partial_version_and_then_a_mix"),
    (
        "a run that is to go on with a mix which has become private",
        "its checkpoints and figures lie where they would not be allowed",
        "test_a_public_run_gains_no_private_data",
    ),
    (
        "a mix changed since its versions were pinned",
        "cannot be trained on",
        "test_a_lock_in_the_repository_pins_the_versions",
    ),
    (
        "a version that the lock pins is gone",
        "cannot be trained on",
        "test_a_lock_in_the_repository_pins_the_versions",
    ),
    (
        "caps that leave nothing to read before the last step",
        "has nothing left to read from about step",
        "test_caps_that_end_the_run_too_early",
    ),
    (
        "a run that was locked with other data",
        "A run keeps its data",
        "test_a_run_keeps_the_lock_that_it_has",
    ),
    ("a byte of a shard changed", "is damaged", "test_damage_is_found"),
    ("an upstream version is gone", "which is gone", "test_upstream_version_that_is_gone"),
    (
        "fewer samples than readers",
        "one for each rank and loader worker",
        "test_dataset_smaller_than_its_readers",
    ),
    (
        "a dataset without the split that a run reads",
        "declares no split",
        "test_mix_of_a_dataset_without_train",
    ),
    (
        "a version removed while a run begins",
        "is gone: ",
        "control/test_outdated_checks.py::test_the_gate_refuses_what_is_removed_meanwhile",
    ),
)

MIXING = of(
    "data/mixing/sampler.py",
    "data/mixing/test_sampler.py",
    (
        "all samples of a dataset are dropped",
        "in every order, so its share cannot be reached",
        "test_a_source_of_which_all_is_dropped_ends_the_run",
    ),
    (
        "caps that leave nothing to read",
        "The caps of the mix leave nothing to go on with",
        "test_caps_that_leave_nothing_end_the_run_and_say_why",
    ),
)

REFUSALS = (*STEPS, *VERSIONS, *RUNS, *GATE, *MIXING)
