"""Two versions of any step, written as the factory's own steps write them."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from factory.data import Sample, layout, table
from factory.keys import Key, public
from factory.namespace import Namespace, Provenance, Version

type Publish = Callable[..., Version]

CLEAN = public("text/notes/clean")


def sample(name: str, text: str = "a text that says something", **given: Any) -> Sample:
    return Sample.document(id=name, title="Title", sections=[("", text)], **given)


@pytest.fixture
def namespace(tmp_path: Path) -> Namespace:
    (tmp_path / "root").mkdir()
    return Namespace(tmp_path / "root")


@pytest.fixture
def publish(namespace: Namespace) -> Publish:
    """A version whose tables hold these samples, or whose files are these."""

    def write(
        tables: dict[str, Iterable[Sample]] | Iterable[Sample] | None = None,
        *,
        key: Key = CLEAN,
        content_id: str = "",
        files: dict[str, bytes] | None = None,
        facts: dict[str, Any] | None = None,
        **given: Any,
    ) -> Version:
        number = len(namespace.versions(key))
        arguments: dict[str, Any] = {
            "inputs": [],
            "input_id": f"input {number}",
            "provenance": Provenance(run_id="run-1", identity="tester"),
            "source": key.classification,
            "parameters": {"rows": "*.jsonl"},
            "code": "c0de",
            "checks": [],
            "licenses": ["CC-BY-4.0"],
        }
        with namespace.write(key, **{**arguments, **given}) as staging:
            rows = 0
            by_name = tables if isinstance(tables, dict) else {layout.SAMPLES: tables or ()}
            for name, samples in by_name.items() if tables is not None else ():
                listed = list(samples)
                rows += len(listed)
                table.write_samples(staging.path / name, listed)
            for name, data in (files or {}).items():
                (staging.path / name).parent.mkdir(parents=True, exist_ok=True)
                (staging.path / name).write_bytes(data)
            counts = dict.fromkeys(by_name, 0) if isinstance(tables, dict) else None
            staging.describe(
                content_id=content_id or f"content {number}",
                rows=rows,
                facts=(facts or {}) | ({"rows": counts} if counts else {}),
            )
        return staging.version

    return write
