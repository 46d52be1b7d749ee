"""The mutations of checks: each is a version as no step may make it, and one check must say so.

The last field is a part of what the check says. `docs/checks.md` is made from this table.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.data.mutations import damage
from tests.data.mutations.damage import Damage, Rows


@dataclass(frozen=True)
class Mutation:
    """A damage that a check must catch."""

    step: str
    check: str
    broken: str
    """In plain words: what is wrong with the version."""

    says: str
    damage: Damage

    @property
    def id(self) -> str:
        """The name of its test."""
        return f"{self.step}-{self.check}-{self.broken}"


def _same_id(rows: Rows) -> Rows:
    return [*rows, rows[0]]


def _without_first(rows: Rows) -> Rows:
    return rows[1:]


def _none(_: Rows) -> Rows:
    return []


def _first_twice(rows: Rows) -> Rows:
    return [*rows[1:], rows[1]]


def _first(**values: Any) -> Any:
    return lambda rows: [rows[0] | values, *rows[1:]]


def _all(**values: Any) -> Any:
    return lambda rows: [row | values for row in rows]


def _no_parts(name: str) -> Damage:
    def damaged(version: Path) -> None:
        for path in (version / name).iterdir():
            path.unlink()

    return damaged


def _empty(version: Path) -> None:
    for part in range(2):
        damage.rows_of("samples", _none, part)(version)


def _numbers(content: pa.Table) -> pa.Table:
    position = content.schema.get_field_index("id")
    return content.set_column(position, "id", pa.array(range(len(content))))


def _id_of_the_other_part(version: Path) -> None:
    found: Rows = []
    damage.rows_of("samples", lambda rows: found.extend(rows) or rows)(version)
    damage.rows_of("samples", _first(id=found[0]["id"]), 1)(version)


def _in_both(version: Path) -> None:
    """The removed sample is kept as well."""
    removed: Rows = []
    damage.rows_of("removed", lambda rows: removed.extend(rows) or rows)(version)
    damage.rows_of("samples", _first(id=removed[0]["id"]))(version)


def _moved(version: Path) -> None:
    """One sample of a group goes to the other split, the rest of the group stays."""
    taken: Rows = []

    def take(rows: Rows) -> Rows:
        groups = [row["group"] for row in rows]
        number = next(n for n, one in enumerate(groups) if groups.count(one) > 1)
        taken.append(rows.pop(number))
        return rows

    damage.rows_of("train", take)(version)
    damage.rows_of("test", lambda rows: rows + taken)(version)


def _all_to_train(version: Path) -> None:
    for part in range(2):
        taken: Rows = []
        damage.rows_of("test", lambda rows, taken=taken: taken.extend(rows) or [], part)(version)
        damage.rows_of("train", lambda rows, taken=taken: rows + taken, part)(version)


def _fewer_counted(found: dict[str, Any]) -> None:
    found["rows"] = 19


RAW = (
    Mutation(
        "raw",
        "files_intact",
        "a byte of a file is another",
        "part-0.jsonl differs",
        damage.content("files/part-0.jsonl", lambda data: data.replace(b"letter 5", b"letter 6")),
    ),
    Mutation(
        "raw",
        "files_intact",
        "a file is cut",
        "part-1.jsonl differs",
        damage.content("files/part-1.jsonl", lambda data: data[:-1]),
    ),
    Mutation(
        "raw",
        "files_intact",
        "a file is gone",
        "part-1.jsonl is missing",
        damage.gone("files/part-1.jsonl"),
    ),
    Mutation(
        "raw",
        "files_intact",
        "two files have each other's content",
        "part-1.jsonl differs",
        damage.copied("files/part-0.jsonl", "files/part-1.jsonl"),
    ),
)

CLEAN = (
    Mutation(
        "clean",
        "schema",
        "a column is missing",
        "column meta is missing",
        damage.columns_of("samples", lambda content: content.drop_columns("meta")),
    ),
    Mutation(
        "clean",
        "schema",
        "a column of the second file has another type",
        "column id is int64, not string",
        damage.columns_of("samples", _numbers, 1),
    ),
    Mutation(
        "clean",
        "schema",
        "a column that samples do not have",
        "column x is unknown",
        damage.columns_of("samples", lambda content: content.append_column("x", content["id"])),
    ),
    Mutation(
        "clean",
        "ids_unique",
        "a sample comes twice",
        "id 'letter-0' is repeated",
        damage.rows_of("samples", _same_id),
    ),
    Mutation(
        "clean",
        "ids_unique",
        "samples of two files have one id",
        "id 'letter-0' is repeated",
        _id_of_the_other_part,
    ),
    Mutation(
        "clean",
        "ids_unique",
        "a sample has no id",
        "1 samples have no id",
        damage.rows_of("samples", _first(id="")),
    ),
    Mutation("clean", "has_rows", "every row was rejected", "0 samples of 26 rows", _empty),
    Mutation(
        "clean",
        "rows_accounted",
        "a sample is lost",
        "26 read is not 24 kept + 1 rejected",
        damage.rows_of("samples", _without_first),
    ),
    Mutation(
        "clean",
        "rows_accounted",
        "a rejected row is lost",
        "26 read is not 25 kept + 0 rejected",
        damage.rows_of("rejected", _none, 1),
    ),
    Mutation(
        "clean",
        "rows_accounted",
        "rows were read and are neither kept nor rejected",
        "27 read is not 25 kept + 1 rejected",
        damage.facts(rows_read=27),
    ),
    Mutation(
        "clean",
        "rows_accounted",
        "the table of rejected rows is gone",
        "could not run",
        _no_parts("rejected"),
    ),
    Mutation(
        "clean",
        "images_stored",
        "a picture that a sample shows is not stored",
        "1 of those shown are not stored",
        damage.rows_of("images", _without_first, 1),
    ),
    Mutation(
        "clean",
        "images_stored",
        "a picture is stored twice",
        "1 are stored again",
        damage.rows_of("images", _same_id, 1),
    ),
    Mutation(
        "clean",
        "rows",
        "fewer samples than the declaration allows",
        "19 rows, outside 20 to 30",
        damage.manifest(_fewer_counted),
    ),
    Mutation(
        "clean",
        "rejected_no_text",
        "more rows rejected for a reason than the declaration allows",
        "10 of 26 rows (38.5%) rejected",
        damage.rows_of("rejected", lambda rows: rows * 10, 1),
    ),
)

DEDUPLICATED = (
    Mutation(
        "deduplicated",
        "ids_unique",
        "a sample comes twice",
        "id 'letter-0' is repeated",
        damage.rows_of("samples", _same_id),
    ),
    Mutation(
        "deduplicated",
        "kept_or_removed",
        "a sample is neither kept nor removed",
        "25 cleaned is not 23 kept + 1 removed",
        damage.rows_of("samples", _without_first),
    ),
    Mutation(
        "deduplicated",
        "kept_or_removed",
        "a sample has become another one",
        "their ids are not those of the cleaned samples",
        damage.rows_of("samples", _first(id="letter-99")),
    ),
    Mutation(
        "deduplicated",
        "kept_or_removed",
        "a sample is both kept and removed",
        "1 are both kept and removed",
        _in_both,
    ),
    Mutation(
        "deduplicated",
        "kept_or_removed",
        "a sample is removed twice",
        "1 removed twice",
        damage.rows_of("removed", _same_id),
    ),
    Mutation(
        "deduplicated",
        "removed_for_kept",
        "a sample was removed for one that is not kept",
        "removed for 'letter-99' or others that are gone",
        damage.rows_of("removed", _all(kept="letter-99")),
    ),
    Mutation(
        "deduplicated",
        "images_stored",
        "the table of pictures is gone",
        "2 of those shown are not stored",
        lambda version: shutil.rmtree(version / "images"),
    ),
    Mutation(
        "deduplicated",
        "rows_balanced",
        "a removed sample is not listed",
        "26 read is not 24 kept + 1 rejected + 0 duplicates",
        damage.rows_of("removed", _none),
    ),
    Mutation(
        "deduplicated",
        "rows_balanced",
        "a row of the source is in none of the tables",
        "27 read is not 24 kept + 1 rejected + 1 duplicates",
        damage.facts(rows_read=27),
    ),
)

SPLIT = (
    Mutation(
        "split",
        "disjoint",
        "the samples of one person are in two splits",
        "is in train and test",
        _moved,
    ),
    Mutation(
        "split",
        "nothing_lost",
        "a sample is lost",
        "23 samples, not the same as the 24 to split",
        damage.rows_of("train", _without_first),
    ),
    Mutation(
        "split",
        "nothing_lost",
        "a sample comes twice and another one is lost",
        "24 samples, not the same as the 24 to split",
        damage.rows_of("train", _first_twice),
    ),
    Mutation(
        "split",
        "nothing_lost",
        "a sample says something else than before",
        "24 samples, not the same as the 24 to split",
        damage.rows_of("train", _first(license="MIT")),
    ),
    Mutation("split", "shares", "one split has everything", "train has 100.00%", _all_to_train),
)

ENERGON = (
    Mutation(
        "energon",
        "index_opens",
        "Energon's table of samples is gone",
        "could not run",
        damage.gone(".nv-meta/index.sqlite"),
    ),
    Mutation(
        "energon",
        "index_opens",
        "Energon's table of samples lacks one",
        "index.sqlite names",
        damage.unindexed,
    ),
    Mutation(
        "energon",
        "index_opens",
        "the index of a shard is gone",
        "shard-000000.tar.idx is missing",
        damage.gone("shard-000000.tar.idx"),
    ),
    Mutation(
        "energon",
        "index_opens",
        "a shard lacks a sample that the index names",
        "shard-000000.tar holds",
        damage.without_entry(index_too=False),
    ),
    Mutation(
        "energon",
        "index_opens",
        "a shard is gone",
        "could not run",
        damage.gone("shard-000000.tar"),
    ),
    Mutation(
        "energon",
        "count_equals_split",
        "shards and index lack a sample of the split",
        "samples in the split",
        damage.without_entry(index_too=True),
    ),
    Mutation(
        "energon",
        "entries_equal_split",
        "an entry says something else than its sample",
        "the 14 entries are not the samples of the split",
        damage.members(lambda name, data: (name, data.replace(b"letter ", b"Letter "))),
    ),
    Mutation(
        "energon",
        "entries_equal_split",
        "an entry has the name of another",
        "does not have the name of its sample",
        damage.members(lambda name, data: (name.replace("letter-", "letter-9"), data)),
    ),
    Mutation(
        "energon",
        "entries_equal_split",
        "an image is gone",
        "images, and not just these lie beside it",
        damage.members(lambda name, data: None if name.endswith(".png") else (name, data)),
    ),
    Mutation(
        "energon",
        "entries_equal_split",
        "an image is another one",
        "images, and not just these lie beside it",
        damage.members(lambda name, data: (name, data + b"x" if name.endswith(".png") else data)),
    ),
    Mutation(
        "energon",
        "entries_equal_split",
        "an image has the name of another",
        "has an image under the name of another",
        damage.members(lambda name, data: (name.replace(".png", "0.png"), data)),
    ),
    Mutation(
        "energon",
        "entries_equal_split",
        "the loss policy beside the shards is another one",
        "loss.json is not what is declared",
        damage.content("loss.json", lambda data: data.replace(b"answer", b"question")),
    ),
)

MUTATIONS = (*RAW, *CLEAN, *DEDUPLICATED, *SPLIT, *ENERGON)
