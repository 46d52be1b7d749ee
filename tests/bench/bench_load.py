"""Loading the code location: generated declarations against a bare Dagster location.

Both sides have the same number of assets and checks with the same metadata, tags, kinds, owners
and descriptions, and run in fresh processes, in turn, imports included, until the repository with
its asset job is built. The bare side is what one would write without the factory: one module that
makes its assets in a loop with Dagster's decorators.
"""

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]
SIZES = {10: 7, 1_000: 3}
"""Declarations, and how often each side loads them."""

GOAL = 1.3

DECLARATION = '''"""Generated questions {i}: what a declaration of the benchmark looks like."""

from factory.data import Dataset, Git, Rejected, Row, Sample, checks
from factory.keys import public


def clean(row: Row) -> Sample | Rejected:
    """Keep what has an answer."""
    answer = row.text("Answer").strip()
    if not answer:
        return Rejected("no answer")
    return Sample.question(id=row.id, question=row.text("Question"), answer=answer)


generated_{i:04d} = Dataset(
    key=public("text/generated_{i:04d}"),
    license="CC-BY-4.0",
    source=Git(
        url="https://example.invalid/generated_{i:04d}",
        revision="577bd3776057ab22d7d9a98c41acd021d4ec7f2f",
        rows="**/*.xml//QAPair",
    ),
    clean=clean,
    split={{"train": 0.98, "validation": 0.01, "test": 0.01}},
    checks=[checks.rows(16_000, 16_500), checks.rejected("no answer", at_most=0.70)],
)
'''

MIX = '''"""The mix that the smoke job names."""

from definitions.datasets.public.text.generated_0000 import generated_0000
from factory.data.mix import Mix

smoke = Mix(domain_shift=[(1.0, generated_0000)])
'''

TIMED = """
import json, sys
from time import perf_counter
described = json.load(open(sys.argv[1])) if len(sys.argv) > 1 else None
start = perf_counter()
{load}
repository = definitions.get_repository_def()
repository.load_all_definitions()
seconds = perf_counter() - start
print(json.dumps({{
    "seconds": seconds,
    "assets": len(repository.assets_defs_by_key),
    "checks": len(repository.asset_checks_defs_by_key),
}}))
"""

OURS = """
from factory.control.code_location import defs
definitions = defs()
"""

DESCRIBE = """
import json
from factory.control.code_location import defs

described = []
repository = defs().get_repository_def()
texts = {}
for checks in repository.asset_checks_defs_by_key.values():
    for spec in checks.check_specs:
        texts.setdefault(spec.asset_key, {})[spec.name] = spec.description
for one in repository.assets_defs_by_key.values():
    spec = next(iter(one.specs))
    described.append({
        "key": list(spec.key.path),
        "deps": [list(dep.asset_key.path) for dep in spec.deps],
        "description": spec.description,
        "tags": {k: v for k, v in spec.tags.items() if not k.startswith("dagster/")},
        "owners": list(spec.owners),
        "kinds": sorted(spec.kinds),
        "group": spec.group_name,
        "code": spec.code_version,
        "metadata": {k: v for k, v in spec.metadata.items() if not k.startswith("dagster/")},
        "limited": spec.key.path[-1] == "clean",
        "engine": bool({"deduplicated", "split", "energon"} & set(spec.key.path)),
        "checks": texts[spec.key],
    })
print(json.dumps(described))
"""

BARE = """
import dagster as dg


class Engine(dg.Config):
    engine: str = "local"


class Limit(Engine):
    limit: int | None = None


def asset(one):
    decorate = dg.asset(
        key=one["key"],
        deps=[dg.AssetKey(dep) for dep in one["deps"]],
        description=one["description"],
        tags=one["tags"],
        owners=one["owners"],
        kinds=set(one["kinds"]),
        group_name=one["group"],
        code_version=one["code"],
        metadata=one["metadata"],
        required_resource_keys={"factory"},
    )
    if one["limited"]:
        @decorate
        def limited(context: dg.AssetExecutionContext, config: Limit) -> None: ...
        return limited

    if one["engine"]:
        @decorate
        def over_shards(context: dg.AssetExecutionContext, config: Engine) -> None: ...
        return over_shards

    @decorate
    def plain(context: dg.AssetExecutionContext) -> None: ...
    return plain


def checks(one):
    key = dg.AssetKey(one["key"])
    specs = [
        dg.AssetCheckSpec(name, asset=key, blocking=True, description=text)
        for name, text in one["checks"].items()
    ]
    @dg.multi_asset_check(
        name="__".join(key.path) + "__checks", specs=specs, required_resource_keys={"factory"}
    )
    def check(context: dg.AssetCheckExecutionContext):
        yield
    return check


definitions = dg.Definitions(
    assets=[asset(one) for one in described],
    asset_checks=[checks(one) for one in described],
    resources={"factory": dg.ResourceDefinition.hardcoded_resource(None)},
    executor=dg.in_process_executor,
)
"""


def run() -> str:
    """Load both sides in turn and return the section of the page."""
    rows: list[str] = []
    for declarations, times in SIZES.items():
        with tempfile.TemporaryDirectory() as folder:
            ours, bare, counts = _compare(Path(folder), declarations, times)
        ratio = statistics.median(ours) / statistics.median(bare)
        rows.append(
            f"| {declarations:,} | {counts['assets']:,} | {counts['checks']:,} "
            f"| {statistics.median(ours):.2f} s | {statistics.median(bare):.2f} s "
            f"| **{ratio:.2f}** | {times} |"
        )
    return "\n".join(
        [
            "## Loading the code location",
            "",
            "From the first import to the built repository, in a fresh process: generated dataset",
            "declarations, one file each, against one bare module that makes the same assets and",
            f"checks in a loop. Medians; the goal is a ratio of at most {GOAL}.",
            "",
            "| declarations | assets | checks | factory | bare Dagster | ratio | times each |",
            "|---:|---:|---:|---:|---:|---:|---:|",
            *rows,
        ]
    )


def _compare(
    folder: Path, declarations: int, times: int
) -> tuple[list[float], list[float], dict[str, int]]:
    _generate(folder, declarations)
    described = folder / "described.json"
    described.write_text(_python(folder, DESCRIBE))  # also compiles what both sides import
    ours: list[float] = []
    bare: list[float] = []
    counts: dict[str, int] = {}
    for _ in range(times):
        mine = json.loads(_python(folder, TIMED.format(load=OURS)))
        other = json.loads(_python(folder, TIMED.format(load=BARE), str(described)))
        ours.append(mine.pop("seconds"))
        bare.append(other.pop("seconds"))
        if mine != other:
            raise AssertionError(f"the two sides differ: {mine} and {other}")
        counts = mine
    return ours, bare, counts


def _generate(folder: Path, declarations: int) -> None:
    target = folder / "definitions"
    shutil.copytree(
        CHECKOUT / "definitions",
        target,
        ignore=shutil.ignore_patterns("__pycache__", "mixes", "datasets"),
    )
    package = target / "datasets" / "public" / "text"
    package.mkdir(parents=True)
    for folder in (package, *package.parents[:2]):
        (folder / "__init__.py").touch()
    for i in range(declarations):
        (package / f"generated_{i:04d}.py").write_text(DECLARATION.format(i=i))
    mixes = target / "mixes"
    mixes.mkdir()
    (mixes / "__init__.py").write_text("")
    (mixes / "smoke.py").write_text(MIX)


def _python(folder: Path, code: str, *arguments: str) -> str:
    # Both sides find their byte code cached, as on any machine that loads for the second time.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr)
    return done.stdout.splitlines()[-1]
