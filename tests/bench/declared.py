"""One declared dataset through all of its steps, in a process of its own: `python -m ... KEY`.

Prints what was read, kept and removed, how long it took, and the most memory that the process and
those it started held, as one line of JSON.
"""

import json
import resource
import sys
import time
from typing import Any

from factory.data.free_checks import run_checks
from factory.data.steps import Step, run_step, steps
from factory.discovery import datasets
from factory.namespace import Namespace, Provenance, Version
from factory.settings import Settings


def made(key: str) -> dict[str, Any]:
    """Make, check and promote every step of a dataset; returns the figures."""
    settings = Settings.from_environment()
    settings.make_default_root()
    namespace = Namespace(settings.root)
    failed: list[str] = []
    started = time.perf_counter()
    for step in steps(datasets()[key]):
        version = _version(step, namespace, settings)
        records = run_checks(step, version, namespace)
        failed += [f"{step.name}: {one.summary}" for one in records.values() if not one.passed]
        if failed:
            break
        namespace.promote(version)
    seconds = time.perf_counter() - started
    own, children = (resource.getrusage(who).ru_maxrss for who in (0, resource.RUSAGE_CHILDREN))
    return {
        "key": key,
        "seconds": seconds,
        "own_mb": own / 1024,
        "largest_child_mb": children / 1024,
        "failed": failed,
    } | _counts(namespace, key)


def _version(step: Step, namespace: Namespace, settings: Settings) -> Version:
    inputs = {key: version for key in step.inputs if (version := namespace.current(key))}
    provenance = Provenance(run_id="benchmark", identity="benchmark")
    return run_step(step, namespace, inputs, settings=settings, provenance=provenance).version


def _counts(namespace: Namespace, key: str) -> dict[str, Any]:
    declared = datasets()[key]
    cleaned = namespace.current(declared.key / "clean")
    kept = namespace.current(declared.key / "deduplicated")
    facts: dict[str, Any] = dict(cleaned.manifest.facts) if cleaned else {}
    removed: dict[str, int] = kept.manifest.facts["duplicates"] if kept else {}
    return {
        "partial": bool(cleaned and cleaned.manifest.partial),
        "read": facts.get("rows_read", 0),
        "rejected": facts.get("rejected", {}),
        "cleaned": cleaned.manifest.rows if cleaned else 0,
        "kept": kept.manifest.rows if kept else None,
        "duplicates": sum(removed.values()),
    }


if __name__ == "__main__":
    print(json.dumps(made(sys.argv[1])))
