"""The package's folder in the repository, and its import name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from packaging.utils import canonicalize_name
from pydantic import Field

from formulacode_dagster.building.declarations.metadata.project import ProjectMetadata
from formulacode_dagster.building.declarations.metadata.pyproject import load_pyproject
from formulacode_dagster.building.declarations.metadata.tables import table_at
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind

from .asv_config import AsvConfig
from .requirements import read_metadata
from .tree import Tree, join

_NOT_PACKAGES = frozenset(
    {"asv_bench", "asv_benchmarks", "bench", "benchmark", "benchmarking", "benchmarks", "build_tools", "ci", "dev"}
    | {"doc", "docs", "examples", "example", "scripts", "test", "tests", "testing", "tools", "tutorials", "vendor"}
)
_MOST_PLACES = 20
_SOURCE_FOLDERS = (".", "src", "lib", "python", "source")


class PackageRoot(Frozen):
    """The folder that is installed."""

    folder: str = Field(description="`.` for the top of the repository")
    reason: str


def is_package_root(tree: Tree, folder: str) -> bool:
    """Return True if pip can install *folder*; a pyproject.toml with nothing but tools' settings does not count."""
    if tree.has(join(folder, "setup.py") or ""):
        return True
    try:
        data = load_pyproject(tree, folder)
    except ValueError:
        return False
    tool = table_at(data, "tool")
    return "project" in data or "build-system" in data or "poetry" in tool or "flit" in tool


def find_package_root(tree: Tree, config: AsvConfig, *, installed_folder: str = "") -> PackageRoot:
    """The folder asv would install, else the most obvious one; the first rule that fits decides.

    *installed_folder* is the folder that asv's commands install. Raises ItemFailure (`package_root`).
    """
    subdir = join(".", config.repo_subdir or ".") or "."
    below = join(subdir, installed_folder) if installed_folder else None
    if below is not None and is_package_root(tree, below):
        return PackageRoot(folder=below, reason=f"asv's commands install {installed_folder}")
    if config.repo_subdir and is_package_root(tree, subdir):
        return PackageRoot(folder=subdir, reason=f"{config.path} names repo_subdir {config.repo_subdir}")
    if is_package_root(tree, "."):
        return PackageRoot(folder=".", reason="the top of the repository can be installed")
    places = {path.rpartition("/")[0] for path in tree.files if path.endswith(("/setup.py", "/pyproject.toml"))}
    usable = [place for place in places if not _NOT_PACKAGES & set(place.split("/")) and is_package_root(tree, place)]
    usable.sort(key=lambda place: (place.count("/"), place))
    for place in usable[:_MOST_PLACES]:
        name = read_metadata(tree, place).name
        if name is not None and _is_same(name.value, config.project):
            return PackageRoot(folder=place, reason=f"the project {name.value}, which {config.path} names")
    above = [place for place in usable if f"{config.folder}/".startswith(f"{place}/")]
    if above:
        return PackageRoot(folder=above[-1], reason=f"nearest folder above {config.path} that can be installed")
    if "python" in usable:
        return PackageRoot(folder="python", reason="python/ is the only part that can be installed")
    if usable:
        return PackageRoot(folder=usable[0], reason="shallowest folder that can be installed")
    raise ItemFailure(
        FailureKind.PACKAGE_ROOT,
        f"nothing at {tree.commit} can be installed",
        why="neither a setup.py nor a pyproject.toml with a project was found",
        remedy="The suite may belong to another repository",
    )


def find_import_name(
    tree: Tree, folder: str, metadata: ProjectMetadata, *, project: str = "", imported: Iterable[str] = ()
) -> str:
    """The name to import after the build: one the project states, found among its files; empty when none is there.

    The name of a project `a.b` with a package `a/b` is the namespace `a`. Without a stated name, fall back to asv's
    *project*, then to what the benchmarks have *imported*, then to the only top-level package of the folder; several
    are ambiguous and yield none.
    """
    own = metadata.name.value if metadata.name is not None else ""
    stated = [*_spellings(own), *metadata.import_names, *_spellings(project), *imported]
    places = _places(folder, metadata.source_folders)
    namespace, _, _ = own.partition(".")
    inside = f"{own.replace('.', '/')}/__init__.py"
    if own != namespace and namespace.isidentifier() and any(tree.has(join(place, inside) or "") for place in places):
        return namespace
    present = [name for place in places for name in _packages_in(tree, place)]
    for name in stated:
        if name in present and name not in _NOT_PACKAGES:
            return name
    for place in places:
        likely = [name for name in _packages_in(tree, place, modules=False) if name not in _NOT_PACKAGES]
        if len(likely) == 1:
            return likely[0]
    return ""


def _is_same(name: str, other: str) -> bool:
    return bool(other) and canonicalize_name(name) == canonicalize_name(other)


def _spellings(project: str) -> tuple[str, ...]:
    plain = re.sub(r"[-.]+", "_", project)
    return tuple(dict.fromkeys(filter(None, (plain, plain.lower(), project.lower()))))


def _places(folder: str, stated: Iterable[str]) -> tuple[str, ...]:
    joined = (join(folder, place) for place in (*stated, *_SOURCE_FOLDERS))
    return tuple(dict.fromkeys(place for place in joined if place is not None))


def _packages_in(tree: Tree, place: str, *, modules: bool = True) -> list[str]:
    start = "" if place == "." else f"{place}/"
    packages: dict[str, None] = {}
    for path in tree.below(place):
        parts = path.removeprefix(start).split("/")
        if len(parts) == 2 and parts[1] in ("__init__.py", "__init__.pyx", "__init__.py.in"):
            packages[parts[0]] = None
        elif modules and len(parts) == 1 and parts[0].endswith(".py") and parts[0] != "setup.py":
            packages[parts[0].removesuffix(".py")] = None
    return [name for name in packages if name.isidentifier()]
