"""Row patterns: which files of a source are read, what a row of them is, and how they are written.

`Rows` is what a declaration says, a pattern is its short form, `Pattern` is both taken apart. What
reads the rows is `reader`; what they become is in `row`.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, cast

from factory.data.row_form import Format, check_form, check_markup
from factory.errors import DeclarationError

SUFFIXES: dict[str, Format] = {
    "xml": "xml",
    "nxml": "xml",
    "jsonl": "jsonl",
    "ndjson": "jsonl",
    "json": "json",
    "csv": "csv",
    "tsv": "tsv",
    "tab": "tsv",
    "parquet": "parquet",
    "txt": "text",
    "text": "text",
    "md": "text",
}
"""What a file is by the end of its name; any other one is a row as a whole."""

COMPRESSED = ("gz", "bz2", "xz", "zst")
"""Endings that are taken off a name first: `a.jsonl.gz` is JSON lines."""

ARCHIVES = ("zip", "tar", "tgz", "tbz2", "txz")

_PARTS_OF_IMAGES: dict[str, Format] = {
    "frame": "frame",
    "tile": "tile",
    "thumbnail": "tile",
}


@dataclass(frozen=True, slots=True)
class Rows:
    """Which rows a source has, and what their files do not say by themselves."""

    pattern: str
    """`*.csv`, `**/*.xml//Article`, `data.zip!**/*.jsonl`: see `Pattern`."""

    format: Format | None = None
    """What the files are, where their names say something else."""

    encoding: str | None = None
    """Of text files. None: by their mark, else UTF-8, else detected if `min_confidence` says so."""

    min_confidence: float | None = None
    """How sure the detection of an encoding must be, above 0 and up to 1. None: nothing is
    detected, and a file that is neither marked nor UTF-8 is refused."""

    delimiter: str | None = None
    """Between the cells of a table: a comma, in a TSV file a tab."""

    quote: str | None = '"'
    """Around cells of a table; None where quotes are letters as any other."""

    header: bool = True
    """Whether a table begins with a line of names."""

    columns: tuple[str, ...] | None = None
    """The names of a table's columns, in the place of those in its first line."""

    ragged: Literal["refuse", "reject"] = "refuse"
    """What a table's row with more or fewer cells than columns does: end the step, or be rejected
    alone."""

    keyed: str | None = None
    """Name of the field for the keys, where a JSON file is an object with a row under each."""

    items: str | None = None
    """Where each record holds a list whose items are the rows: its field, `entry`, `data.entry`."""

    max_ratio: float = 250.0
    """How many times as large as packed a compressed file or an archive may be."""

    beside: tuple[str, ...] = ()
    """Patterns of further files that raw keeps, for `row.beside`."""

    def __post_init__(self) -> None:
        check_form(self)

    def parameters(self) -> str | dict[str, Any]:
        """What a manifest holds of it: the pattern, and whatever was declared besides."""
        declared: dict[str, Any] = {}
        for one in fields(self):
            value: Any = getattr(self, one.name)
            if value != one.default:
                declared[one.name] = (
                    list(cast("tuple[Any, ...]", value)) if isinstance(value, tuple) else value
                )
        return self.pattern if declared.keys() == {"pattern"} else declared


@dataclass(frozen=True, slots=True)
class Pattern:
    """A row pattern in its parts: files, `!` members of an archive, `//` elements of a file.

    | pattern                     | a row is                                             |
    |-----------------------------|------------------------------------------------------|
    | `**/*.xml`                  | a whole XML file: `row.element` is its root          |
    | `**/*.xml//QAPair`          | each `QAPair` element, at any depth                  |
    | `*.jsonl`, `*.ndjson`       | each line: `row.record`                              |
    | `*.json`                    | each item of the list, or the whole object           |
    | `*.csv`, `*.tsv`            | each row below the header: `row.record`              |
    | `*.parquet`                 | each row: `row.record`                               |
    | `*.txt`, `*.md`             | a whole file as text: `row.string`                   |
    | `**/*.dcm//frame`           | each frame of a DICOM file: `row.image`              |
    | `*.svs//tile`, `//thumbnail` | each tile of a slide, or a small picture of it      |
    | `**/*.svs//thumbnail`       | a slide made small: `row.image`                      |
    | anything else               | a whole file: `row.content`, `row.image`             |
    | `*.jsonl.gz`, bz2, xz, zst  | as without the last ending                           |
    | `data.zip!**/*.csv`, tar    | the same of each such file in the archive            |
    """

    files: str
    members: str | None
    element: str | None
    rows: Rows

    @classmethod
    def parse(cls, rows: str | Rows) -> "Pattern":
        """Take `data.zip!**/*.xml//QAPair` apart.

        Raises:
            DeclarationError: the pattern is empty, absolute or climbs out of the source, or asks
                for what the files do not have.
        """
        declared = rows if isinstance(rows, Rows) else Rows(rows)
        text = declared.pattern
        path, separator, element = text.partition("//")
        files, mark, members = path.partition("!")
        for part in (files, *declared.beside, *([members] if mark else [])):
            if not part or part.startswith("/") or ".." in part.split("/"):
                raise _unusable(text)
        if separator and not element:
            raise _unusable(text)
        pattern = cls(files, members if mark else None, element if separator else None, declared)
        _check_parts(pattern)
        return pattern

    def format(self, name: str) -> Format:
        """What a file with this name is, compression aside."""
        if self.rows.format is not None:
            return self.rows.format
        if self.element in _PARTS_OF_IMAGES and not _is_xml(name):
            return _PARTS_OF_IMAGES[self.element]
        return format_of(name)

    @property
    def records(self) -> "Pattern":
        """The same files by whole records: what a scan reads, since they hold more than items."""
        return replace(self, rows=replace(self.rows, items=None))

    def matching(self, names: Iterable[str]) -> list[str]:
        """The paths that the pattern names, sorted. `**` stands for any number of folders."""
        return chosen(names, self.files)

    def kept(self, names: Iterable[str]) -> list[str]:
        """The paths that the pattern names, and those that its rows may ask for."""
        known = list(names)
        return sorted({name for one in self.fetched() for name in chosen(known, one)})

    def fetched(self) -> tuple[str, ...]:
        """The patterns of all files that are kept."""
        return (self.files, *self.rows.beside)


def chosen(names: Iterable[str], glob: str) -> list[str]:
    """The paths that fit a pattern of files, sorted."""
    compiled = re.compile(_expression(glob))
    return sorted(name for name in names if compiled.fullmatch(name))


def stem(name: str) -> tuple[str, str | None]:
    """A name without the ending of its compression, and that ending."""
    before, dot, suffix = name.rpartition(".")
    return (before, suffix.lower()) if dot and suffix.lower() in COMPRESSED else (name, None)


def format_of(name: str) -> Format:
    """What a file is by its name."""
    return SUFFIXES.get(_suffix(name), "content")


def is_archive(name: str) -> bool:
    """Whether a file is one of files by its name."""
    return _suffix(name) in ARCHIVES


def _suffix(name: str) -> str:
    return stem(name)[0].rpartition(".")[2].lower()


def _is_xml(name: str) -> bool:
    return format_of(name) == "xml"


def _unusable(text: str) -> DeclarationError:
    return DeclarationError(
        f"Row pattern {text!r} names no files inside the source. Write for instance "
        "'**/*.xml', '**/*.xml//QAPair', '*.jsonl' or 'data.zip!**/*.csv'."
    )


def _check_parts(pattern: Pattern) -> None:
    text, inner = pattern.rows.pattern, pattern.members or pattern.files
    kind = pattern.format(inner)
    if kind == "xml":
        check_markup(pattern.rows)
    if pattern.element is not None and kind not in ("xml", "frame", "tile"):
        raise DeclarationError(
            f"Row pattern {text!r} asks for elements of files that are not XML. "
            "Leave out the part from '//' on."
        )
    if pattern.members is not None and kind in ("frame", "tile"):
        raise DeclarationError(
            f"Row pattern {text!r} asks for parts of images inside an archive, which are read from "
            "files only. Ask for an unpacked source."
        )
    if pattern.members is not None and _reaches_further(pattern.members):
        raise DeclarationError(
            f"Row pattern {text!r} reaches into an archive within an archive, of which no row "
            "would be read. Have the inner one unpacked."
        )
    if pattern.members is not None and not is_archive(pattern.files):
        raise DeclarationError(
            f"Row pattern {text!r} asks for members of files that are no archives. "
            f"Archives end in {', '.join(ARCHIVES)}, or tar with {', '.join(COMPRESSED)}."
        )


def _reaches_further(members: str) -> bool:
    """Whether members are asked for below something that is named as an archive."""
    return "!" in members or any(is_archive(part) for part in members.split("/")[:-1])


def _expression(glob: str) -> str:
    """A path pattern as a regular expression; `*` and `?` stay within a folder."""
    parts: list[str] = []
    for segment in glob.split("/"):
        if segment == "**":
            parts.append("(?:[^/]+/)*")
            continue
        literal = "".join(_WILDCARDS.get(letter, re.escape(letter)) for letter in segment)
        parts.append(f"{literal}/")
    text = "".join(parts)
    return text.removesuffix("/") if not glob.endswith("**") else f"{text}[^/]+"


_WILDCARDS = {"*": "[^/]*", "?": "[^/]"}
