"""Tests of a repository written down as a suite of benchmarks, and what of them can be laid over every arm."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import PurePosixPath

from formulacode_dagster.declarations.python_source import parse_python
from formulacode_dagster.models.image import BuildSpec

MODULE, GROWING = "own_tests", "growing"
_WORD = re.compile(r"[A-Za-z_]\w+")
_NO_NAME = re.compile(r"\W+", re.ASCII)


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
) -> dict[str, bytes]:
    """The benchmark folder with *functions* alone; of each those tests, by name, or all that pytest finds.

    What a survey should come to first is told by *words* that stand in the benchmark.
    Tests that are *grown* name rule and factor as well.
    """
    folder = spec.benchmark_dir.strip("/")
    runtime = _laid(MODULE)
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
        parts.append(f"\n\nclass {class_name(function)}(_Workload):")
        parts += [f"    # {said}"] if said else []
        parts.append(f"    file = {function.file!r}\n    params = {params}")
        parts += ["    grown = True"] if grown else []
    return {
        f"{folder}/__init__.py": b"",
        f"{folder}/{MODULE}.py": (runtime + "\n\n" + "\n".join(parts) + "\n").encode(),
        **({f"{folder}/{GROWING}.py": _laid(GROWING).encode()} if grown else {}),
    }


def _laid(name: str) -> str:
    return resources.files("formulacode_dagster.workloads").joinpath("laid", f"{name}.py").read_text("utf-8")


def is_same_everywhere(path: str, changed: Collection[str], package: str) -> bool:
    """Whether a file of tests can be the same on all arms, where *changed* files of tests are laid over all of them.

    What is laid beside the package is. Tests inside it are installed with it, each arm's own: those may not be changed,
    nor what they share.
    """
    inside = {other for other in changed if package and package in PurePosixPath(other).parts[:-1]}
    shared = {other for other in inside if not PurePosixPath(other).name.startswith("test_")}
    return path not in inside and not (shared and package in PurePosixPath(path).parts[:-1])


def functions_in(source: bytes) -> dict[str, ast.FunctionDef]:
    """The functions of *source*, and its methods as `Class::function`; none of what cannot be read."""
    try:
        body = parse_python(source.decode()).body
    except (SyntaxError, ValueError, RecursionError):
        return {}
    owners = [each for each in body if isinstance(each, ast.ClassDef)]
    functions = [("", each) for each in body] + [(f"{owner.name}::", each) for owner in owners for each in owner.body]
    return {f"{owner}{each.name}": each for owner, each in functions if isinstance(each, ast.FunctionDef)}


def words_of(function: ast.FunctionDef) -> frozenset[str]:
    """Every identifier of *function*, and every word of its texts."""
    return frozenset(_WORD.findall(ast.unparse(function)))


def imported_as(path: str, package: str) -> str:
    """The name of the module in the file *path* of *package*: what lies above the package is no part of it."""
    parts = [part for part in PurePosixPath(path).with_suffix("").parts if part != "__init__"]
    top = package.partition(".")[0]
    return ".".join(parts[parts.index(top) :] if top in parts else parts)


def class_name(function: PytestFunction) -> str:
    """The class of benchmarks that *function* is laid as."""
    name = _NO_NAME.sub("_", f"{PurePosixPath(function.file).with_suffix('')}_{function.name}").lstrip("_")
    return name if name.isidentifier() else f"T{name}"
