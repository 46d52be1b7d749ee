"""A resource of FHIR as a section of text: a heading, and a line for each element.

Every element is read that says something of the patient or the finding; those about the record
itself (`meta`, `language`, `implicitRules`) are not. The narrative, which repeats the elements, is
read where it says that it does not (`status: "additional"`) or there is nothing else. What a
resource contains follows it, and a reference to it reads as its heading.
"""

from collections.abc import Iterator, Mapping
from typing import Any, cast

from factory.data.fhir.values import extension, label, shape, text

type Json = Mapping[str, Any]

INDENT = "  "

_ABOUT_ITSELF = frozenset(
    {"resourceType", "id", "meta", "language", "implicitRules", "text", "contained"}
)
_EXTENSIONS = frozenset({"extension", "modifierExtension"})

_NAMES = ("code", "type", "vaccineCode", "medicationCodeableConcept", "class", "category")
"""What names a resource, first that it has: `Observation: Haemoglobin`."""


def section(resource: Json) -> tuple[str, str]:
    """Heading and text of a resource; of one that says nothing, that it says nothing."""
    contained = {
        f"#{one.get('id', '')}": one for one in cast("list[Json]", resource.get("contained") or [])
    }
    names = {address: heading(one) for address, one in contained.items()}
    lines = list(_lines(resource, names))
    narrative = cast("Json", resource.get("text") or {})
    if narrative and (narrative.get("status") == "additional" or not lines):
        lines.append(text(narrative))
    for one in contained.values():
        lines += [f"{heading(one)}:", *(f"{INDENT}{line}" for line in _lines(one, names))]
    found = "\n".join(line for line in lines if line.strip())
    return heading(resource), found or "No details."


def heading(resource: Json) -> str:
    """What a resource is, and of what."""
    kind = label(str(resource.get("resourceType", "Resource")))
    named = next((said for name in _NAMES if (said := text(resource.get(name)))), "")
    return f"{kind}: {named}" if named else kind


def _lines(element: Json, contained: Mapping[str, str]) -> Iterator[str]:
    for name, value in element.items():
        if name in _EXTENSIONS:
            for one in cast("list[Json]", value or []):
                called, said = extension(one)
                yield f"{called}: {said}" if said else ""
        elif name.startswith("_"):
            yield from _beside(name, value)
        elif name not in _ABOUT_ITSELF:
            for one in cast("list[Any]", value) if isinstance(value, list) else [value]:
                yield from _element(label(name), one, contained)


def _element(name: str, value: object, contained: Mapping[str, str]) -> Iterator[str]:
    """A line for a value; for an element with parts, a line for each below its name."""
    if not isinstance(value, Mapping):
        said = text(value)
        yield f"{name}: {said}" if said else ""
        return
    fields = cast("Json", value)
    if shape(fields) is not None:
        said = contained.get(str(fields.get("reference"))) or text(fields)
        yield f"{name}: {said}" if said else ""
        return
    below = [line for line in _lines(fields, contained) if line.strip()]
    if below:
        yield f"{name}:"
        yield from (f"{INDENT}{line}" for line in below)


def _beside(name: str, value: Any) -> Iterator[str]:
    """Extensions of a plain value, `_birthDate`."""
    for one in cast("list[Any]", value) if isinstance(value, list) else [value]:
        for inner in cast("Json", one or {}).get("extension") or ():
            called, said = extension(inner)
            yield f"{label(name)} {called.lower()}: {said}" if said else ""
