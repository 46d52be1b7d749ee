"""The end of `make test`: has every test of the table reached the refusal that it is named for?

What `reached` has written is in the folder named on the command line. Some of the tests read the
real inputs, and are skipped where those are missing; then nothing is asked.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.conftest import shared_folder
from tests.data.mutations.refusal import Refusal
from tests.data.mutations.sites import sites
from tests.data.mutations.table import REFUSALS

IN_ANOTHER_PROCESS = (
    "tests/namespace/test_retention.py::test_an_account_that_may_not_read_everything_is_refused",
)

type Seen = dict[str, list[tuple[str, object]]]
"""Pairs of a module, and of a line or an error's words: `lines` and `said`."""


def unreached(folder: Path, refusals: Iterable[Refusal] = REFUSALS) -> list[str]:
    """The rows of the table whose test did not get there, each as a line."""
    seen: dict[str, Seen] = defaultdict(lambda: {"lines": [], "said": []})
    for file in folder.glob("*.json"):
        for test, found in json.loads(file.read_bytes()).items():
            for kind, pairs in found.items():
                seen[test][kind] += pairs
    return [
        f"{one.test}: {one.module}: {one.says!r}"
        for one in refusals
        if one.test not in IN_ANOTHER_PROCESS and not _is_reached(one, seen[one.test])
    ]


def _is_reached(one: Refusal, seen: Seen) -> bool:
    lines = {site.first for site in sites(one.module) if one.says in site.text}
    if any(module == one.module and line in lines for module, line in seen["lines"]):
        return True
    return any(one.says in str(said) for _, said in seen["said"])


def main(folder: Path) -> None:
    """Print what was asked, and exit with 1 where a test did not reach its refusal."""
    if not shared_folder().is_dir():
        sys.stdout.write(f"Refusals: not asked; no real inputs are in {shared_folder()}.\n")
        return
    if missed := unreached(folder):
        sys.exit("\n".join(["These tests do not reach the refusal of their row:", *missed]))
    sys.stdout.write(f"Refusals: each of {len(REFUSALS)} was reached by its test.\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
