"""Generates a suite of benchmarks from tests, and decides which test files may be copied over every arm."""

from __future__ import annotations

import ast
import functools
import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

from formulacode_dagster.building.declarations.python_source import parse_python
from formulacode_dagster.models.image import BuildSpec

MODULE, GROWING = "own_tests", "growing"
_FRAMES = resources.files("formulacode_dagster.measuring.workloads").joinpath("generated")
_WORD = re.compile(r"[A-Za-z_]\w+")
_NO_NAME = re.compile(r"\W+", re.ASCII)
_FOLDERS = frozenset(
    {"test", "tests", "_tests", "testsuite", "benchmark", "benchmarks", "bench", "benches", "asv_bench"}
)
_TESTING = "testing"
"""Contains tests in the repository's root; within a package it is test support for others."""
_FILE = re.compile(r"^(test_.*|conftest|bench_.*|benchmark_.*)\.py$")
_FILE_BESIDE = re.compile(r"^(.*_tests?|tests|.*_bench|.*_benchmarks?)\.py$")
"""Patterns outside the package: inside it, `ab_test.py` may be anything."""


@dataclass(frozen=True, order=True)
class PytestFunction:
    """A function or method that pytest collects: its file below the repository, and `Class::function`."""

    file: str
    name: str


def suite_files(
    functions: Mapping[PytestFunction, Collection[str]],
    spec: BuildSpec,
    *,
    words: Mapping[PytestFunction, Collection[str]] | None = None,
    grown: bool = False,
    handing: bool = False,
) -> dict[str, bytes]:
    """Return a benchmark folder with only *functions*; of each the named tests, or all that pytest finds.

    *words* in the benchmark tell a survey what to run first. *grown* tests also name rule and factor. Tests *handing* a
    callable to a fixture may be short: it is called as often after one setup as the clock needs, unless a second call
    differs from the first.
    """
    folder = spec.benchmark_dir.strip("/")
    runtime = _laid(MODULE)
    names = class_names(functions)
    files: dict[str, list[str]] = {}
    for function in functions:
        files.setdefault(function.file, []).append(function.name)
    parts = [
        f"_REPOSITORY = Path(__file__).resolve().parents[{len(PurePosixPath(folder).parts)}]",
        f"_FOLDER = str(_REPOSITORY / {spec.package_root!r})",
        f"_ITEMS = {{file: _collected(file, functions) for file, functions in {files!r}.items()}}",
    ]
    for function, tests in functions.items():
        said = " ".join(sorted((words or {}).get(function, ())))
        params = repr([*tests]) if tests else f"_names({function.file!r}, {function.name!r})"
        parts.append(f"\n\nclass {names[function]}(_Workload):")
        parts += [f"    # {said}"] if said else []
        parts.append(f"    file = {function.file!r}\n    params = {params}")
        parts += ["    grown = True"] if grown else []
        parts += ["    number = 0"] if handing else []
    return {
        f"{folder}/__init__.py": b"",
        f"{folder}/{MODULE}.py": (runtime + "\n\n" + "\n".join(parts) + "\n").encode(),
        **({f"{folder}/{GROWING}.py": _laid(GROWING).encode()} if grown else {}),
    }


@functools.cache
def frames_sha256(folder: Traversable = _FRAMES) -> str:
    """Return the hash of the generated frames around whatever is timed."""
    every = hashlib.sha256()
    for file in sorted(folder.iterdir(), key=lambda file: file.name):
        if file.name.endswith(".py"):
            for part in (file.name.encode(), file.read_bytes()):
                every.update(hashlib.sha256(part).digest())
    return every.hexdigest()


def _laid(name: str) -> str:
    return _FRAMES.joinpath(f"{name}.py").read_text("utf-8")


def is_laid(path: str, package: str) -> bool:
    """Return True if a changed file belongs to tests or benchmarks, and may be copied over every arm.

    The decision uses the file's name, or that of a parent folder, exactly. Other files of the *package* are what is
    timed: copied over the base, they would give it the patch, and the solution would be published.
    """
    top = package.partition(".")[0]
    *folders, name = PurePosixPath(path).parts
    if not _FOLDERS.isdisjoint(folder for folder in folders if folder != top):
        return True
    if name == f"{top}.py":
        return False
    if _FILE.match(name):
        return True
    return top not in folders and (folders[:1] == [_TESTING] or _FILE_BESIDE.match(name) is not None)


def is_same_everywhere(path: str, changed: Collection[str], package: str) -> bool:
    """Return True if a test file can be the same on all arms, given that *changed* files are copied where allowed.

    Files outside the package are copied. Tests inside it are installed with it, each arm's own: these, and what they
    share, must be unchanged.
    """
    laid = {other for other in changed if is_laid(other, package)}
    if path in changed and path not in laid:
        return False
    top = package.partition(".")[0]
    inside = {other for other in laid if top in PurePosixPath(other).parts[:-1]}
    shared = {other for other in inside if not PurePosixPath(other).name.startswith("test_")}
    return path not in inside and not (shared and top in PurePosixPath(path).parts[:-1])


def functions_in(source: bytes) -> dict[str, ast.FunctionDef]:
    """Return the functions of *source*, and its methods as `Class::function`; none if it cannot be parsed."""
    try:
        body = parse_python(source.decode()).body
    except (SyntaxError, ValueError, RecursionError):
        return {}
    owners = [each for each in body if isinstance(each, ast.ClassDef)]
    functions = [("", each) for each in body] + [(f"{owner.name}::", each) for owner in owners for each in owner.body]
    return {f"{owner}{each.name}": each for owner, each in functions if isinstance(each, ast.FunctionDef)}


def words_of(code: ast.AST) -> frozenset[str]:
    """Every identifier of *code*, and every word of its texts."""
    # not by unparsing it, which ends at code that is nested deeper than it may be for the parser
    fields = (value for node in ast.walk(code) for _, value in ast.iter_fields(node))
    values = (each for value in fields for each in (value if isinstance(value, list) else [value]))
    return frozenset(word for each in values if isinstance(each, str) for word in _WORD.findall(each))


def imported_as(path: str, package: str) -> str:
    """Return the module name of the file *path* in *package*, without the folders above the package."""
    parts = [part for part in PurePosixPath(path).with_suffix("").parts if part != "__init__"]
    top = package.partition(".")[0]
    return ".".join(parts[parts.index(top) :] if top in parts else parts)


def class_names(functions: Iterable[PytestFunction]) -> dict[PytestFunction, str]:
    """Return the benchmark class for each of *functions*, with unique names."""
    names: dict[PytestFunction, str] = {}
    taken: Counter[str] = Counter()
    for function in functions:
        name = _class_name(function)
        taken[name] += 1
        while (own := name if taken[name] == 1 else f"{name}_{taken[name]}") in names.values():
            taken[name] += 1
        names[function] = own
    return names


def _class_name(function: PytestFunction) -> str:
    name = _NO_NAME.sub("_", f"{PurePosixPath(function.file).with_suffix('')}_{function.name}").lstrip("_")
    return name if name.isidentifier() else f"T{name}"
