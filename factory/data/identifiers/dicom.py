"""DICOM headers to findings: by the table of PS3.15, by what values say, and by rules on images.

Three things are looked at: attributes that the basic profile would have removed or replaced (see
`dicom_table`), private elements, and every text in the header with the recognizers of `text`.
Where the header says that identity was removed and how, a value in an attribute that the profile
only replaces is taken for a replacement and counted; elsewhere it blocks. Pixels are not read:
images that may carry writing are told by `burned_in` of `factory.data.images`.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from factory.data.identifiers import dicom_table
from factory.data.identifiers.flatten import decode
from factory.data.identifiers.kinds import HeaderFinding, Kind
from factory.data.identifiers.quiet import quiet
from factory.data.identifiers.text import scan_text
from factory.data.images.burned_in import may_be_written_on

if TYPE_CHECKING:
    from pydicom import DataElement, Dataset

_TEXTS = frozenset({"AE", "LO", "SH", "ST", "LT", "UT", "UC", "UR"})
_BYTES = frozenset({"UN", "OB"})
_PIXELS = frozenset({0x7FE00008, 0x7FE00009, 0x7FE00010})
_BURNED_IN = 0x00280301
_LONGEST_TEXT_IN_BYTES = 1 << 20
_DEFERRED_BYTES = 1 << 20
_APART = "\n" * 8
"""Between two texts: further than any rule looks from a label to its value."""


def scan_dicom(
    source: "Path | BinaryIO | Dataset", *, burned_in_allowed: bool = False
) -> list[HeaderFinding]:
    """What looks like an identifier in a header, in the order of its tags.

    A file or element that cannot be read is a finding of its own, `unreadable`, and direct.

    Args:
        source: a file, or what pydicom read from one.
        burned_in_allowed: the partner's statement lists this image as free of names.

    Raises:
        ScanFailed: a recognizer failed on a text in the header.
    """
    import pydicom

    with quiet():
        data = source if isinstance(source, pydicom.Dataset) else _read(source)
        if data is None:
            return [HeaderFinding("", Kind.UNREADABLE, direct=True)]
        scan = _Scan(removed=_identity_removed(data))
        scan.preamble(data)
        scan.dataset(getattr(data, "file_meta", None) or pydicom.Dataset())
        scan.dataset(data)
        found = scan.finish()
        if not burned_in_allowed and may_be_written_on(data):
            found.append(HeaderFinding(_tag(_BURNED_IN), Kind.BURNED_IN, direct=True))
    return sorted(set(found), key=lambda one: (one.tag, one.start or 0, one.kind))


def is_dicom(path: Path) -> bool:
    """Whether a file is DICOM by its mark, its suffix or its first element."""
    with path.open("rb") as file:
        head = file.read(132)
    if head[128:] == b"DICM" or path.suffix.lower() in (".dcm", ".dicom", ".ima"):
        return True
    return head[:4] in (
        b"\x08\x00\x05\x00",
        b"\x08\x00\x00\x00",
        b"\x02\x00\x00\x00",
        b"\x08\x00\x08\x00",
    )


def _read(path: Path | BinaryIO) -> "Dataset | None":
    import pydicom

    try:
        data = pydicom.dcmread(path, defer_size=_DEFERRED_BYTES, force=True)
        return data if len(data) else None
    except Exception:  # malformed in any way; what pydicom says quotes the file
        return None


@dataclass
class _Scan:
    """One header, item by item."""

    removed: bool
    """The header says that identity was removed, and how."""

    found: list[HeaderFinding] = field(default_factory=list[HeaderFinding], init=False)
    texts: list[tuple[str, str, Kind | None]] = field(
        default_factory=list[tuple[str, str, Kind | None]], init=False
    )
    """Where each text stands, the text, and what its place in the table makes it already."""

    def dataset(self, data: "Dataset", path: str = "") -> None:
        """Everything in a data set and in the items of its sequences."""
        for tag in sorted(data.keys()):
            where = f"{path}{_tag(int(tag))}"
            element = _element(data, int(tag))
            if element is None:
                self.found.append(HeaderFinding(where, Kind.UNREADABLE, direct=True))
            elif int(tag) not in _PIXELS and not element.is_empty:
                self._element(element, where)

    def preamble(self, data: "Dataset") -> None:
        """128 bytes before the header that may hold anything."""
        preamble: bytes = getattr(data, "preamble", None) or b""
        self.texts.append(("preamble", preamble.strip(b"\0 ").decode("latin-1"), None))

    def finish(self) -> list[HeaderFinding]:
        """Read the texts, all in one go: calling the recognizers costs more than a short text."""
        starts: list[int] = []
        length = 0
        for _, text, _ in self.texts:
            starts.append(length)
            length += len(text) + len(_APART)
        for one in scan_text(_APART.join(text for _, text, _ in self.texts)):
            place = bisect_right(starts, one.start) - 1
            where, _, known = self.texts[place]
            if known is not one.kind:
                start, end = one.start - starts[place], one.end - starts[place]
                self.found.append(HeaderFinding(where, one.kind, one.direct, start, end))
        return self.found

    def _element(self, element: "DataElement", where: str) -> None:
        known = self._judge(element, where)
        if element.VR == "SQ":
            for number, item in enumerate(cast("list[Dataset]", element.value)):
                self.dataset(item, f"{where}[{number}].")
        self.texts.extend((where, text, known) for text in _texts(element))

    def _judge(self, element: "DataElement", where: str) -> Kind | None:
        """An element by its place in the table, whatever its value says."""
        tag, table = element.tag, dicom_table.profile()
        if tag.is_private:
            kind = None if tag.is_private_creator else Kind.PRIVATE_ELEMENT
        elif table.lists(tag.group, tag.element):
            kind = dicom_table.kind(element.keyword, element.VR)
        else:
            kind = None
        if kind is not None:
            replaced = self.removed and table.may_stand(tag.group, tag.element)
            self.found.append(HeaderFinding(where, kind, direct=kind.direct and not replaced))
        return kind


def _element(data: "Dataset", tag: int) -> "DataElement | None":
    """An element with its value converted; none if that fails."""
    try:
        element = data[tag]
        _ = element.value
    except Exception:  # malformed in any way; what pydicom says quotes the file
        return None
    return element


def _texts(element: "DataElement") -> Iterator[str]:
    value: Any = element.value
    if element.VR in _TEXTS:
        values = cast(list[Any], value) if not isinstance(value, str) else [value]
        yield from (str(one) for one in values)
    elif element.VR in _BYTES and isinstance(value, bytes) and len(value) <= _LONGEST_TEXT_IN_BYTES:
        text = decode(value.rstrip(b"\0 "))
        if text:
            yield text


def _identity_removed(data: "Dataset") -> bool:
    said = _plain(data, "PatientIdentityRemoved").upper() == "YES"
    return said and bool(
        _plain(data, "DeidentificationMethod") or data.get("DeidentificationMethodCodeSequence")
    )


def _plain(data: "Dataset", keyword: str) -> str:
    try:
        value: Any = data.get(keyword)
    except Exception:  # an element that cannot be read says nothing
        return ""
    return "" if value is None else str(value).strip()


def _tag(tag: int) -> str:
    return f"({tag >> 16:04X},{tag & 0xFFFF:04X})"
