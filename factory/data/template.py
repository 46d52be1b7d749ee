"""The file that `factory new-dataset` writes: a declaration with holes, which loads as it is.

Until every hole is filled, running a step of the dataset stops at once and lists those that are
left, see `holes`.
"""

import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from factory.errors import DeclarationError
from factory.keys import Key, PublicKey

HOLE = re.compile(r"FILL[ -]IN")

_WORD = re.compile(r"\w+")

_PUBLIC_SOURCE = """Git(
        url="https://github.com/FILL-IN/FILL-IN",  # FILL IN, or PythonPackage, or Http
        revision="0" * 40,  # FILL IN: all 40 digits of a commit
        rows={rows}
    )"""

_PRIVATE_SOURCE = """PartnerDrop(
        folder="FILL-IN",  # FILL IN: the partner's folder below FACTORY_DROPS
        rows={rows}
    )"""

_GROUP = """
        group=row.text("patient"),  # FILL IN: the pseudonym; a patient's rows stay together"""

_FILE = '''"""FILL IN: what this is, who published it, how many rows, which language."""

from factory.data import {names}
{more_imports}from factory.keys import {classification}


def clean(row: Row) -> Sample{or_rejected}:
    """FILL IN: what is left out, and why."""
{body}


{variable} = Dataset(
    key={classification}("{name}"),
    license="LicenseRef-FILL-IN",  # FILL IN: SPDX id
    source={source},
    clean=clean,{fields}
    split={{"train": 0.98, "validation": 0.01, "test": 0.01}},
    checks=[
        checks.rows(1, 1_000_000_000),  # FILL IN: how many samples do you expect?
        checks.rejected("{reason}", at_most=0.01),  # FILL IN: how many may there be?
    ],
)
'''


@dataclass(frozen=True, slots=True)
class _Kind:
    """What differs between declarations of one kind of data and of another."""

    rows: str
    body: str
    """Of `clean`; `{group}` is where a private one names the patient."""

    reason: str
    """For which rows are rejected."""

    names: tuple[str, ...] = ("Rejected",)
    """Imported from `factory.data`, besides those that all need."""

    more_imports: str = ""
    fields: str = ""


_KINDS: Mapping[str, _Kind] = {
    "document": _Kind(
        rows='"**/*.jsonl",  # FILL IN: which files; a row is a line',
        body="""\
    text = row.text("text").strip()  # FILL IN: the field that holds the text
    if not text:
        return Rejected("no text")
    return Sample.document(
        id=row.id,
        title="",
        sections=[("", text)],{group}
    )""",
        reason="no text",
    ),
    "article": _Kind(
        rows='"**/*.xml//Article",  # FILL IN: which files; a row is such an element',
        body="""\
    text = row.text("Abstract").strip()  # FILL IN: the element that holds the text
    if not text:
        return Rejected("no text")
    return Sample.document(
        id=row.id,
        title=row.text("Title").strip(),  # FILL IN: the element that holds the title
        sections=[("", text)],{group}
    )""",
        reason="no text",
    ),
    "question": _Kind(
        rows='"**/*.jsonl",  # FILL IN: which files; a row is a line',
        body="""\
    answer = row.text("answer").strip()  # FILL IN: the field that holds the answer
    if not answer:
        return Rejected("no answer")
    return Sample.question(
        id=row.id,
        question=row.text("question").strip(),  # FILL IN: the field that holds the question
        answer=answer,{group}
    )""",
        reason="no answer",
    ),
    "conversation": _Kind(
        rows='"**/*.jsonl",  # FILL IN: which files; a row is a line',
        body="""\
    return Sample.conversation(
        id=row.id,
        messages=openai.messages(row.record, "messages"),  # FILL IN: the field; or sharegpt
        tools=tools(row.record),{group}
    )""",
        reason="no assistant turn",
        names=(),
        more_imports="from factory.data.chat import openai, tools\n",
    ),
    "images": _Kind(
        rows='Rows("**/*.jsonl", beside=("**/*.png",)),  # FILL IN: a row is a line',
        body="""\
    caption = row.text("caption").strip()  # FILL IN: the field that holds the caption
    if not caption:
        return Rejected("no caption")
    image = row.decoded(row.beside(row.text("image")))  # FILL IN: the field with the file's name
    return Sample.image_text(
        id=row.id,
        parts=[image, caption],{group}
    )""",
        reason="no caption",
        names=("Images", "Rejected", "Rows"),
        fields="\n    images=Images(),",
    ),
}

KINDS = tuple(_KINDS)
"""What a template is offered for. Where the key is private, the source is a partner's delivery."""


def declaration(key: Key, kind: str = KINDS[0]) -> str:
    """The text of `definitions/datasets/<key>.py`.

    Raises:
        DeclarationError: the last part of the key cannot be the name of a Python module, or there
            is no template for that kind.
    """
    variable = key.parts[-1]
    for part in key.parts:
        if not part.isidentifier() or keyword.iskeyword(part) or part.startswith("_"):
            raise DeclarationError(
                f"{key} cannot be a declaration: a Python module cannot be named {part!r}, or "
                "would not be looked for. Choose another name."
            )
    if kind not in _KINDS:
        raise DeclarationError(
            f"There is no template for {kind!r}; write one of {', '.join(KINDS)}."
        )
    chosen = _KINDS[kind]
    is_public = isinstance(key, PublicKey)
    source = "Git" if is_public else "PartnerDrop"
    names = {"Dataset", source, "Row", "Sample", *chosen.names}
    used = {*names, "checks", "clean", key.classification, *_WORD.findall(chosen.more_imports)}
    if variable in used:  # `clean` would find the dataset where it asks for what is imported
        variable = f"{variable}_dataset"
    return _FILE.format(
        names=", ".join([*sorted(names), "checks"]),
        more_imports=chosen.more_imports,
        classification=key.classification,
        or_rejected=" | Rejected" if "Rejected" in chosen.names else "",
        body=chosen.body.format(group="" if is_public else _GROUP),
        variable=variable,
        name=key.name,
        source=(_PUBLIC_SOURCE if is_public else _PRIVATE_SOURCE).format(rows=chosen.rows),
        fields=chosen.fields,
        reason=chosen.reason,
    )


def holes(file: Path) -> list[str]:
    """The lines of a declaration that are still to be filled in, with their numbers."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return [
        f"line {number}: {line.strip()}"
        for number, line in enumerate(lines, start=1)
        if HOLE.search(line)
    ]
