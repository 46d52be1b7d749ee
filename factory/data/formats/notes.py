"""Notes: what was found out while files were read, for the manifest."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

FILES_LISTED = 100
"""Files of a sort that are named; all of them are counted."""

UTF_8 = "utf-8"


@dataclass
class Notes:
    """What a step should record about its reading; those of two shards can be merged."""

    encodings: Counter[str] = field(default_factory=Counter[str])
    """Files by the encoding that was used."""

    other_files: dict[str, str] = field(default_factory=dict[str, str])
    """How each file that is not UTF-8 was read: `cp1252, detected with confidence 0.97`."""

    passed_over: Counter[str] = field(default_factory=Counter[str])
    """Members of archives that stand for nothing, such as the `__MACOSX` twins."""

    empty: int = 0
    """Files that were read and gave no row."""

    empty_files: list[str] = field(default_factory=list[str])

    def without_rows(self, file: str) -> None:
        """A file gave no row: it is empty, or holds nothing that the pattern asks for."""
        self.empty += 1
        if len(self.empty_files) < FILES_LISTED:
            self.empty_files.append(file)

    def encoding(self, file: str, encoding: str, how: str) -> None:
        """A file is read as this encoding, which was declared, marked or detected."""
        self.encodings[encoding] += 1
        if encoding != UTF_8 and len(self.other_files) < FILES_LISTED:
            self.other_files[file] = f"{encoding}, {how}"

    def merge(self, other: "Notes") -> None:
        """Add what another reader saw."""
        self.encodings += other.encodings
        self.passed_over += other.passed_over
        self.empty += other.empty
        self.empty_files = [*self.empty_files, *other.empty_files][:FILES_LISTED]
        for file, how in other.other_files.items():
            if len(self.other_files) < FILES_LISTED:
                self.other_files[file] = how

    @classmethod
    def from_facts(cls, facts: Mapping[str, Any]) -> Self:
        """The inverse of `facts`."""
        return cls(
            encodings=Counter(facts.get("encodings", {})),
            other_files=dict(facts.get("not_utf_8", {})),
            passed_over=Counter(facts.get("passed_over", {})),
            empty=facts.get("without_rows", 0),
            empty_files=list(facts.get("files_without_rows", [])),
        )

    def facts(self) -> dict[str, Any]:
        """What goes into the manifest; empty where no text file was read."""
        facts: dict[str, Any] = {
            "encodings": dict(sorted(self.encodings.items())),
            "not_utf_8": dict(sorted(self.other_files.items())),
            "passed_over": dict(sorted(self.passed_over.items())),
            "without_rows": self.empty,
            "files_without_rows": sorted(self.empty_files),
        }
        return {name: value for name, value in facts.items() if value}
