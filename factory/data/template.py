"""The file that `factory new-dataset` writes: a declaration with holes, which loads as it is.

Until every hole is filled, running a step of the dataset stops at once and lists those that are
left, see `holes`.
"""

import keyword
import re
from pathlib import Path

from factory.errors import DeclarationError
from factory.keys import Key, PublicKey

HOLE = re.compile(r"FILL[ -]IN")

_PUBLIC_SOURCE = """Git(
        url="https://github.com/FILL-IN/FILL-IN",  # FILL IN, or PythonPackage, or Http
        revision="0" * 40,  # FILL IN: all 40 digits of a commit
        rows="**/*.jsonl",  # FILL IN: one row per line; "**/*.xml//Tag" for one per element
    )"""

_PRIVATE_SOURCE = """PartnerDrop(
        folder="FILL-IN",  # FILL IN: the partner's folder below FACTORY_DROPS
        rows="**/*.jsonl",  # FILL IN: one row per line; "**/*.xml//Tag" for one per element
    )"""

_FILE = '''"""FILL IN: what this is, who published it, how many rows, which language."""

from factory.data import Dataset, {source_name}, Rejected, Row, Sample, checks
from factory.keys import {classification}


def clean(row: Row) -> Sample | Rejected:
    """FILL IN: what is left out, and why."""
    text = row.text("text").strip()  # FILL IN: the field or element that holds the text
    if not text:
        return Rejected("no text")
    return Sample.document(id=row.id, title="", sections=[("", text)])


{variable} = Dataset(
    key={classification}("{name}"),
    license="LicenseRef-FILL-IN",  # FILL IN: SPDX id
    source={source},
    clean=clean,
    split={{"train": 0.98, "validation": 0.01, "test": 0.01}},
    checks=[
        checks.rows(1, 1_000_000_000),  # FILL IN: how many samples do you expect?
        checks.rejected("no text", at_most=0.01),  # FILL IN: how many may have none?
    ],
)
'''


def declaration(key: Key) -> str:
    """The text of `definitions/datasets/<key>.py`.

    Raises:
        DeclarationError: the last part of the key cannot be the name of a Python module.
    """
    variable = key.parts[-1]
    for part in key.parts:
        if not part.isidentifier() or keyword.iskeyword(part) or part.startswith("_"):
            raise DeclarationError(
                f"{key} cannot be a declaration: a Python module cannot be named {part!r}, or "
                "would not be looked for. Choose another name."
            )
    is_public = isinstance(key, PublicKey)
    return _FILE.format(
        classification=key.classification,
        name=key.name,
        variable=variable,
        source=_PUBLIC_SOURCE if is_public else _PRIVATE_SOURCE,
        source_name="Git" if is_public else "PartnerDrop",
    )


def holes(file: Path) -> list[str]:
    """The lines of a declaration that are still to be filled in, with their numbers."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [
        f"line {number}: {line.strip()}"
        for number, line in enumerate(lines, start=1)
        if HOLE.search(line)
    ]
