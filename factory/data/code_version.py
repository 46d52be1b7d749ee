"""Code versions: a hash of the sources that decide what a step makes, and of nothing else.

Imports are followed by reading the sources, never by running them: from the declaring file and
from the modules that do the step's work, through every module of `factory` and `definitions` that
they import, at any depth. A name imported from a package counts for the module that it comes
from. Third-party packages that are imported on the way count with their installed version, since
a parser's release can change what a row says. An import built at run time is not seen. What a
declaration says about checks, splits or names is left out (`row_source`).

Each source is read once per process, so that a thousand declarations stay cheap, and the hash is
of the sources that this process has loaded.
"""

import ast
import bisect
import functools
import hashlib
import importlib.metadata
import importlib.util
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from factory.data.row_source import deciding

OURS = ("factory", "definitions")

MAKE_NO_ROWS = frozenset(
    {
        "factory.data.checks",
        "factory.data.dataset",
        "factory.data.declared",
        "factory.data.dedup_policy",
        "factory.data.engines",
        "factory.data.finished",
        "factory.data.images.policy",
        "factory.data.mix",
        "factory.data.phases",
        "factory.data.progress",
        "factory.data.publish",
        "factory.data.row_form",
        "factory.data.shards",
        "factory.data.source_files",
        "factory.data.sources",
        "factory.data.statistics",
        "factory.data.stores",
        "factory.errors",
        "factory.keys",
        "factory.namespace",
        "factory.reports",
        "factory.settings",
        "factory.spec",
    }
)
"""Modules that name, declare, judge or store, and have no say in what a row becomes: what they
pass on is in a step's parameters. Without this list, a new error class would fetch and clean
every dataset anew."""

DISTRIBUTIONS: Mapping[str, tuple[str, ...]] = {
    "PIL": ("pillow",),
    "dicomanonymizer": ("dicom_anonymizer",),
    "fhir": ("fhir.resources",),
    "megatron": ("megatron-bridge", "megatron-core", "megatron-energon"),
    "openslide": ("openslide-python",),
    "yaml": ("PyYAML",),
}
"""Packages that are not called as what is installed: looking that up reads the file list of every
package there is, half a second for each lookup."""


@dataclass(frozen=True, slots=True)
class _Import:
    module: str
    name: str | None
    """None for `import module`; `*` for everything."""


@dataclass(frozen=True, slots=True)
class _Source:
    sha256: str
    imports: tuple[_Import, ...]
    bindings: tuple[tuple[str, _Import], ...]
    """Names that module-level `from ... import` statements bind: what a package re-exports."""


def code_version(files: Iterable[Path] = (), modules: Iterable[str] = ()) -> str:
    """Hash the files, the modules, and everything of ours that they import."""
    return _code_version(tuple(files), tuple(modules))


@functools.cache
def _code_version(files: tuple[Path, ...], modules: tuple[str, ...]) -> str:
    sources: dict[str, str] = {}
    packages: set[str] = set()
    for file in files:
        _add_file(file, sources, packages)
    for module in modules:
        closure, used = _closure(module)
        if module not in closure:
            raise FileNotFoundError(f"module {module} decides what a step makes and is not there")
        sources.update(closure)
        packages.update(used)
    lines = [f"{name} {sources[name]}\n" for name in sorted(sources)]
    lines += [f"{name}=={_installed(name)}\n" for name in sorted(packages)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def forget() -> None:
    """Read every source anew: for tests that edit one."""
    for cached in (_code_version, _read, _closure, _locate, _installed):
        cached.cache_clear()


def _add_file(file: Path, sources: dict[str, str], packages: set[str]) -> None:
    """A declaring file: named by its role, because its path is not part of what it makes."""
    source = _read(file)
    sources[f"<{file.name}>"] = source.sha256
    for module in _targets(source.imports, packages):
        closure, used = _closure(module)
        sources.update(closure)
        packages.update(used)


@functools.cache
def _closure(module: str) -> tuple[dict[str, str], frozenset[str]]:
    """Hash of each module of ours that this one needs, itself included; packages used."""
    sources: dict[str, str] = {}
    packages: set[str] = set()
    queue = [module]
    while queue:
        name = queue.pop()
        file = _locate(name)
        if name in sources or file is None or _makes_no_rows(name):
            continue
        source = _read(file)
        sources[name] = source.sha256
        queue.extend(_targets(source.imports, packages))
    return sources, frozenset(packages)


def _targets(imports: Iterable[_Import], packages: set[str]) -> Iterator[str]:
    """Modules of ours that these imports need; adds the third-party packages to `packages`."""
    for found in imports:
        top = found.module.partition(".")[0]
        if top in OURS:
            yield from _providers(found, frozenset())
        elif top not in sys.stdlib_module_names:
            packages.add(top)


def _providers(wanted: _Import, seen: frozenset[_Import]) -> Iterator[str]:
    """The modules that an import really needs: a package's re-export is followed to its origin."""
    if wanted.name is None or wanted in seen:
        yield wanted.module
        return
    submodule = f"{wanted.module}.{wanted.name}"
    if _locate(submodule) is not None:
        yield submodule
        return
    file = _locate(wanted.module)
    if file is None or file.name != "__init__.py":
        yield wanted.module
        return
    origin = dict(_read(file).bindings).get(wanted.name)
    if origin is None or origin.module.partition(".")[0] not in OURS:
        yield wanted.module
        return
    yield from _providers(origin, seen | {wanted})


def _makes_no_rows(module: str) -> bool:
    parts = module.split(".")
    return any(".".join(parts[:end]) in MAKE_NO_ROWS for end in range(1, len(parts) + 1))


@functools.cache
def _locate(module: str) -> Path | None:
    """The source file of a module of ours; a package without `__init__.py` has none."""
    top, *rest = module.split(".")
    if top not in OURS:
        return None
    for root in _roots(top):
        base = root.joinpath(*rest)
        for file in (base.with_name(f"{base.name}.py"), base / "__init__.py"):
            if rest and file.is_file():
                return file
        if not rest and (base / "__init__.py").is_file():
            return base / "__init__.py"
    return None


def _roots(top: str) -> tuple[Path, ...]:
    spec = importlib.util.find_spec(top)
    locations = spec.submodule_search_locations if spec is not None else None
    return tuple(Path(location) for location in locations or ())


@functools.cache
def _read(file: Path) -> _Source:
    content = file.read_bytes()
    tree = ast.parse(content, filename=str(file))
    lines = [n for n, line in enumerate(content.splitlines(), start=1) if b"import" in line]
    statements = list(_statements(tree.body, lines))
    return _Source(
        sha256=hashlib.sha256(deciding(content, tree)).hexdigest(),
        imports=tuple(found for node in statements for _, found in _imports(node, file)),
        bindings=tuple(pair for node in statements for pair in _imports(node, file)),
    )


def _statements(
    body: Iterable[ast.stmt], lines: list[int]
) -> Iterator[ast.Import | ast.ImportFrom]:
    """Import statements at any depth, except those that only a type checker executes.

    `lines` are those with the word `import`: what holds none of them is not looked into.
    """
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield statement
            continue
        at = bisect.bisect_left(lines, statement.lineno)
        if at == len(lines) or lines[at] > (statement.end_lineno or statement.lineno):
            continue
        blocks = [getattr(statement, name, ()) for name in ("body", "orelse", "finalbody")]
        if isinstance(statement, ast.If) and _is_for_type_checkers(statement.test):
            blocks = blocks[1:]
        blocks += [handler.body for handler in getattr(statement, "handlers", ())]
        blocks += [case.body for case in getattr(statement, "cases", ())]
        for block in blocks:
            yield from _statements(block, lines)


def _is_for_type_checkers(test: ast.expr) -> bool:
    name = test.attr if isinstance(test, ast.Attribute) else getattr(test, "id", "")
    return name == "TYPE_CHECKING"


def _imports(node: ast.Import | ast.ImportFrom, file: Path) -> Iterator[tuple[str, _Import]]:
    if isinstance(node, ast.Import):
        for alias in node.names:
            yield alias.asname or alias.name, _Import(alias.name, None)
        return
    module = node.module or ""
    if node.level:
        module = _absolute(module, node.level, file)
    for alias in node.names:
        yield alias.asname or alias.name, _Import(module, alias.name)


def _absolute(module: str, level: int, file: Path) -> str:
    """The module that a relative import in this file means."""
    for top in OURS:
        for root in _roots(top):
            if file.is_relative_to(root):
                package = [top, *file.relative_to(root).parts[:-1]]
                package = package[: len(package) - level + 1]
                return ".".join([*package, *([module] if module else [])])
    return module


@functools.cache
def _installed(package: str) -> str:
    """Version of the distribution that provides a top-level package."""
    try:
        if package in DISTRIBUTIONS:
            return _versions(DISTRIBUTIONS[package])
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        names = importlib.metadata.packages_distributions().get(package, [])
        return _versions(sorted(names))


def _versions(distributions: Iterable[str]) -> str:
    return ",".join(f"{name}-{importlib.metadata.version(name)}" for name in distributions)
