"""What a partner's statement allows reaches the step that reads the images.

The statement stays in the drop zone. Of its list of images that somebody looked at, the files that
are published are written beside them, and added to what the dataset declares.
"""

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from factory.data.images.policy import Images

NAME = "burned_in_allowed.json"
"""In a raw version; missing where the statement allows none."""


def write(names: Iterable[str], directory: Path) -> None:
    """Put the paths of these files into a raw version."""
    listed = sorted(names)
    if listed:
        (directory / NAME).write_text(json.dumps(listed), encoding="utf-8")


def policy(declared: Images | None, directory: Path) -> Images | None:
    """What a dataset declares, with what came with the files of this raw version."""
    file = directory / NAME
    if declared is None or not file.is_file():
        return declared
    listed: Any = json.loads(file.read_text(encoding="utf-8"))
    return replace(declared, burned_in_allowed=sorted({*declared.burned_in_allowed, *listed}))
