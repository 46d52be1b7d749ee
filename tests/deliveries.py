"""A partner's delivery as it should be: files, and the `delivery.json` that lists them."""

import hashlib
import json
from pathlib import Path
from typing import Any


def statement(files: dict[str, str], **changes: Any) -> dict[str, Any]:
    """A complete statement for files with these hashes."""
    pseudonymization = {
        "method": "names and numbers removed, dates shifted",
        "tool": "scrubber",
        "tool_version": "2.1",
        "date": "2026-03-01",
        "signed_by": "Data protection officer",
        "surrogates": True,
    }
    pseudonymization |= changes.pop("pseudonymization", {})
    return {
        "partner": "A hospital",
        "agreement": "DPA-2026-01",
        "files": files,
        "pseudonymization": pseudonymization,
        **changes,
    }


def sign(folder: Path, **changes: Any) -> Path:
    """Write the statement for what lies in a folder."""
    file = folder / "delivery.json"
    file.unlink(missing_ok=True)
    hashes = {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    file.write_text(json.dumps(statement(hashes, **changes)), encoding="utf-8")
    return file
