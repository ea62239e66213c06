"""Lines that a patch changes, and the parts whose execution cannot be seen."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from formulacode_dagster.building.suites.compiled import is_compiled_source
from formulacode_dagster.building.suites.overlays import is_of_suite, is_whole_checkout
from formulacode_dagster.building.suites.remote import FunctionSpans
from formulacode_dagster.measuring.workloads.overlay import words_of
from formulacode_dagster.models.measurement import Arm

from .changed_lines import Source, changed_lines
from .patch import FileChange

BUILD_FILES = frozenset({"setup.py", "meson.build", "CMakeLists.txt", "Cargo.toml", "build.rs"})
"""Files that may change compiled code without touching its source."""
DECLARING_FILES = frozenset(
    {
        *("pyproject.toml", "setup.cfg", "site.cfg", "build.py", "hatch_build.py", "meson.options"),
        *("meson_options.txt", "CMakePresets.json", "Makefile", "makefile", "GNUmakefile", "SConstruct", "Cargo.lock"),
    }
)
"""Files that may affect a build but mostly do not: changes to them are no change of code by themselves."""
BESIDE_THE_PACKAGE = frozenset({"test", "tests", "testing", "testsuite", "doc", "docs", "examples"})
SOURCE_FOLDERS = frozenset({"src", "lib", "python"})
"""Folders that hold packages, and are none."""
SHORTEST_NAME = 5
"""Shorter names say too little: `get`, `run`, `main` are in every suite."""
_DEFINITION = re.compile(r"^[^\S\n]*(?:async\s+)?(?:def|class|cpdef[\w\s\[\],.*]*?)\s+(\w+)\s*[(:]", re.MULTILINE)

Lines = Mapping[str, frozenset[int]]
"""Numbers of lines by path below the repository."""
Meanings = defaultdict[str, set[tuple[str, str]]]
"""Functions and statements by the package whose files they are in, see `Source.meanings`."""


@dataclass(frozen=True)
class TracedFunction:
    """A function of the package whose change Python can trace, on either side."""

    name: str
    """`path:qualified name`, its path that after the change."""
    lines: Mapping[Arm, Lines]
    """Its changed lines, on the base and on the oracle."""
    spans: Mapping[Arm, FunctionSpans]
    """Its first and last lines there; of a new function there are none on the base."""


@dataclass(frozen=True)
class ComparedFile:
    """Changes of one Python file."""

    functions: Sequence[TracedFunction] = ()
    compiled: Sequence[str] = ()
    """Functions compiled by a decorator, which cannot be traced."""
    unread: Sequence[str] = ()
    """Other parts that cannot be traced."""
    entries: Lines | None = None
    """See `ChangedCode`."""


@dataclass(frozen=True)
class ChangedCode:
    """Code that must execute for the patch to matter."""

    base: Lines
    oracle: Lines
    untraceable: tuple[str, ...]
    """Changed files, or parts of them, whose execution Python cannot trace."""
    compiled: tuple[FileChange, ...] = ()
    """The compiled files among them."""
    names: frozenset[str] = frozenset()
    """Names that a benchmark of the change would use: changed functions, their classes, and public names next to them.
    """
    hidden: tuple[str, ...] = ()
    """Code that runs compiled: the files in `compiled`, and functions compiled by a decorator."""
    functions: tuple[TracedFunction, ...] = ()
    """The functions that the lines are in; code outside of functions is in none."""
    entries: Lines | None = None
    """First lines of the changed functions on the base, where they are all that changed and none is new; else None.

    A call that runs one of `oracle` runs one of these on the base, unless what was made before it, by changed code of a
    setup, takes it there; new functions are mostly reached so.
    """

    @property
    def watched(self) -> Lines:
        """The lines of the base, and its `entries`."""
        entries = self.entries or {}
        nothing: frozenset[int] = frozenset()
        return {path: self.base.get(path, nothing) | entries.get(path, nothing) for path in {**self.base, **entries}}

    def spans(self, arm: Arm) -> FunctionSpans:
        """First and last lines of the changed functions on *arm*, by path."""
        spans: dict[str, list[tuple[int, int]]] = {}
        for function in self.functions:
            for path, lines in function.spans.get(arm, {}).items():
                spans.setdefault(path, []).extend(lines)
        return spans


def changed_code(
    files: Sequence[FileChange],
    *,
    base: Mapping[str, bytes],
    oracle: Mapping[str, bytes],
    benchmark_dir: str,
    extensions: Iterable[str] = (),
) -> ChangedCode:
    """Find the lines that *files* change in meaning; comments, docstrings and formatting are no change.

    *base* and *oracle* map paths to the content of the changed Python files on either side. The suite itself is left
    out, because every benchmark executes itself, and so are tests if it is in the repository's root; else of tests and
    documentation only executed code counts, which a suite may import. *extensions* are the compiled modules that the
    suite loads: a Python file compiled into one of them cannot be traced. A build file counts only if nothing else
    changed. Code that only moves within a package is no change, unless the new place is compiled, or may be since a
    build file changes.
    """
    changed: tuple[dict[str, frozenset[int]], dict[str, frozenset[int]]] = ({}, {})
    python = [change for change in files if PurePosixPath(change.path).suffix == ".py"]
    inside = [change for change in python if not _is_of_suite(PurePosixPath(change.path), benchmark_dir)]
    traced = [change for change in inside if not _is_compiled(PurePosixPath(change.path), extensions)]
    sides = {change: _parsed(change, base, oracle) for change in traced}
    moved = _moved({} if changes_build(files) else sides)
    compiled: list[FileChange] = []
    jitted: list[str] = []
    others: list[str] = []
    found: list[TracedFunction] = []
    entries: dict[str, frozenset[int]] | None = {}
    build_files: list[str] = []
    for change in files:
        path = PurePosixPath(change.path)
        if _is_of_suite(path, benchmark_dir):
            continue
        if path.name in BUILD_FILES or path.suffix == ".cmake":
            build_files.append(change.path)
        elif _is_compiled(path, extensions):
            compiled += [] if _is_beside_the_package(path) else [change]
        elif path.suffix == ".py":
            compared = _compare(change, sides[change], moved, changed)
            entries = None if entries is None or compared.entries is None else {**entries, **compared.entries}
            if not _is_beside_the_package(path):
                found += compared.functions
                jitted += compared.compiled
                others += compared.unread
    hidden = [*(change.path for change in compiled), *jitted]
    untraceable = [*hidden, *others]
    if not any(changed) and not untraceable:
        untraceable = build_files
    names = {name for change in files for name in _names(change, base, oracle, benchmark_dir)}
    return ChangedCode(
        *changed,
        tuple(untraceable),
        tuple(compiled),
        frozenset(names),
        tuple(hidden),
        tuple(found),
        None if untraceable else entries,
    )


def changes_build(files: Iterable[FileChange]) -> bool:
    """Return True if one of *files* may change how the same sources are compiled; only the shared objects show if it
    does.
    """
    paths = [PurePosixPath(path) for change in files for path in (change.base_path, change.oracle_path) if path]
    return any(path.name in BUILD_FILES | DECLARING_FILES or path.suffix in {".cmake", ".mk"} for path in paths)


def _is_of_suite(path: PurePosixPath, benchmark_dir: str) -> bool:
    """Return True if *path* is of the suite; tests are, too, if that is in the repository's root."""
    is_test = is_whole_checkout(benchmark_dir) and _is_beside_the_package(path)
    return is_test or is_of_suite(path, benchmark_dir)


def _is_beside_the_package(path: PurePosixPath) -> bool:
    return not BESIDE_THE_PACKAGE.isdisjoint(path.parts) or path.name.startswith("test_") or path.name == "conftest.py"


def _package_of(path: str | None) -> str:
    """Return the top folder of the package that *path* is in; empty for a file in none."""
    folders = PurePosixPath(path or "").parts[:-1]
    return next((folder for folder in folders if folder not in SOURCE_FOLDERS), "")


def _is_compiled(path: PurePosixPath, extensions: Iterable[str]) -> bool:
    """Return True if *path* is a compiled source, or Python that was compiled."""
    if is_compiled_source(path):
        return True
    if path.suffix != ".py":
        return False
    dotted = ".".join(path.with_suffix("").parts)
    return any(dotted == name or dotted.endswith(f".{name}") for name in extensions)


def _parsed(change: FileChange, base: Mapping[str, bytes], oracle: Mapping[str, bytes]) -> tuple[Source, Source] | None:
    """Return both sides of a Python file, empty where it does not exist; None if one cannot be parsed."""
    try:
        sides = Source(base.get(change.base_path or "", b"")), Source(oracle.get(change.oracle_path or "", b""))
        # of a tree that is too deep there is no meaning
        return sides if all(isinstance(side.meanings, frozenset) for side in sides) else None
    except (SyntaxError, ValueError, RecursionError):
        return None


def _moved(sides: Mapping[FileChange, tuple[Source, Source] | None]) -> tuple[Meanings, Meanings]:
    """Return the meanings that a package's files lose, and those that they gain: what is in both only moved.

    Statements outside functions count if their whole file comes or goes; in another they may mean something else. Tests
    and documentation do not count, nor do other packages and folders of scripts: a copy of the old code there, to
    compare with, is no move.
    """
    lost, gained = Meanings(set), Meanings(set)
    for change, pair in sides.items():
        if pair is not None and not _is_beside_the_package(PurePosixPath(change.path)):
            before, after = (side.meanings for side in pair)
            is_whole = change.base_path is None or change.oracle_path is None
            lost[_package_of(change.base_path)] |= {each for each in before - after if is_whole or each[0]}
            gained[_package_of(change.oracle_path)] |= {each for each in after - before if is_whole or each[0]}
    return lost, gained


def _compare(
    change: FileChange,
    sides: tuple[Source, Source] | None,
    moved: tuple[Meanings, Meanings],
    changed: tuple[dict[str, frozenset[int]], dict[str, frozenset[int]]],
) -> ComparedFile:
    """Add the changes of *change* in one Python file, with both *sides*, to *changed* (base, oracle)."""
    if sides is None:
        return ComparedFile(unread=[change.path])
    before, after = sides
    lost, gained = moved
    try:
        found = (
            changed_lines(before, after.meanings | gained[_package_of(change.base_path)], change.base_lines),
            changed_lines(after, before.meanings | lost[_package_of(change.oracle_path)], change.oracle_lines),
        )
    except RecursionError:
        return ComparedFile(unread=[change.path])
    paths = change.base_path, change.oracle_path
    for side, path, lines in zip(changed, paths, found, strict=True):
        if path is not None and lines.lines:
            side[path] = lines.lines
    compiled = {f"{path}:{name}": None for path, lines in zip(paths, found, strict=True) for name in lines.compiled}
    names = {name: None for lines in found for name in lines.functions}
    arms = list(zip((Arm.BASE, Arm.ORACLE), paths, (before, after), found, strict=True))
    functions = [
        TracedFunction(
            f"{change.path}:{name}",
            {arm: {path: lines.functions[name]} for arm, path, _, lines in arms if path and name in lines.functions},
            {arm: {path: source.spans(name)} for arm, path, source, _ in arms if path},
        )
        for name in names
    ]
    unread = [f"{change.path}: module level"] if any(lines.unread for lines in found) else []
    entries = [before.entry_lines(name) for name in names]
    # new tests are called by no benchmark
    is_shown = _is_beside_the_package(PurePosixPath(change.path)) or (
        all(entries) and all(lines.is_inside for lines in found) and not _replaces_names(before, after)
    )
    first = frozenset[int]().union(*entries)
    by_path = {change.base_path: first} if change.base_path and first else {}
    return ComparedFile(functions, [*compiled], unread, by_path if is_shown else None)


def _replaces_names(before: Source, after: Source) -> bool:
    """Return True if a new import binds a name that is used *before*, or may."""
    bound = {name for _, _, name in after.imports - before.imports}
    return "*" in bound or not bound.isdisjoint(words_of(before.tree))


def _names(
    change: FileChange, base: Mapping[str, bytes], oracle: Mapping[str, bytes], benchmark_dir: str
) -> Iterator[str]:
    """Names of functions and classes of a changed file that a benchmark could use, tests and the suite left out."""
    path = PurePosixPath(change.path)
    if _is_of_suite(path, benchmark_dir) or _is_beside_the_package(path):
        return
    content = oracle.get(change.oracle_path or "") or base.get(change.base_path or "") or b""
    for match in _DEFINITION.finditer(content.decode("utf-8", "replace")):
        if len(match[1]) >= SHORTEST_NAME and not match[1].startswith("_"):
            yield match[1]
