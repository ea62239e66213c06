"""Which functions a patch changes, found by comparing the syntax trees of both sides."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from formulacode_dagster.suites.locations import CodeLocation

from .patch import FileChange

COMPILED_SUFFIXES = frozenset(
    {
        *(".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".cu", ".cuh", ".s", ".asm"),
        *(".pyx", ".pxd", ".pxi", ".rs", ".go", ".zig", ".f", ".for", ".f90", ".f95", ".f03"),
    }
)
"""Sources whose execution Python cannot trace."""
BUILD_FILES = frozenset({"setup.py", "meson.build", "CMakeLists.txt", "Cargo.toml", "build.rs"})
"""Files that may change compiled code without touching its source."""
BESIDE_THE_PACKAGE = frozenset({"test", "tests", "testing", "testsuite", "doc", "docs", "examples"})
COMPILING_DECORATORS = frozenset({"jit", "njit", "vectorize", "guvectorize", "cfunc", "stencil", "jitclass"})

SHORTEST_NAME = 5
"""Shorter names say too little: `get`, `run`, `main` are in every suite."""
_DEFINITION = re.compile(r"^\s*(?:async\s+)?(?:def|class|cpdef[\w\s\[\],.*]*?)\s+(\w+)\s*[(:]", re.MULTILINE)

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class ChangedCode:
    """What must be executed for the patch to matter."""

    base: frozenset[CodeLocation]
    oracle: frozenset[CodeLocation]
    untraceable: tuple[str, ...]
    """Changed files, or parts of them, whose execution cannot be observed."""
    names: frozenset[str] = frozenset()
    """Names a benchmark of the change would use: changed functions, their classes, and what is public beside them."""


@dataclass(frozen=True)
class _Source:
    """One parsed file: its functions by first line, and the tree."""

    tree: ast.Module
    functions: tuple[tuple[str, Function], ...]

    @classmethod
    def parse(cls, content: bytes) -> _Source:
        tree = ast.parse(content)
        return cls(tree, tuple(_functions(tree, "")))

    def dumps(self) -> frozenset[tuple[str, str]]:
        return frozenset((name, _dump(function)) for name, function in self.functions)

    def statements(self) -> frozenset[str]:
        return frozenset(ast.dump(statement) for statement in _plain_statements(self.tree.body))


def changed_code(
    files: Sequence[FileChange],
    *,
    base: Mapping[str, bytes],
    oracle: Mapping[str, bytes],
    benchmark_dir: str,
    extensions: Iterable[str] = (),
) -> ChangedCode:
    """Find the functions that *files* change in meaning; comments, docstrings and formatting are no change.

    *base* and *oracle* hold the content of the changed Python files on either side, by path. The suite itself is left
    out: that a benchmark runs itself says nothing; of tests and documentation, only functions count, which a suite may
    import. *extensions* are the compiled modules that the suite loads: a Python
    file that was compiled into one of them cannot be traced. A build file counts only when nothing else changed.
    """
    locations: tuple[set[CodeLocation], set[CodeLocation]] = (set(), set())
    untraceable: list[str] = []
    build_files: list[str] = []
    for change in files:
        path = PurePosixPath(change.path)
        if path.is_relative_to(benchmark_dir):
            continue
        if path.name in BUILD_FILES or path.suffix == ".cmake":
            build_files.append(change.path)
        elif _is_compiled(path, extensions):
            untraceable += [] if _is_beside_the_package(path) else [change.path]
        elif path.suffix == ".py":
            _compare(change, base, oracle, locations, [] if _is_beside_the_package(path) else untraceable)
    if not any(locations) and not untraceable:
        untraceable = build_files
    names = {name for change in files for name in _names(change, base, oracle, benchmark_dir)}
    return ChangedCode(frozenset(locations[0]), frozenset(locations[1]), tuple(untraceable), frozenset(names))


def _is_beside_the_package(path: PurePosixPath) -> bool:
    return not BESIDE_THE_PACKAGE.isdisjoint(path.parts) or path.name.startswith("test_") or path.name == "conftest.py"


def _is_compiled(path: PurePosixPath, extensions: Iterable[str]) -> bool:
    """Whether *path* is a compiled source, a template of one (`.pyx.in`, `.c.src`), or Python that was compiled."""
    source = path.with_suffix("") if path.suffix in {".in", ".src"} else path
    if source.suffix.lower() in COMPILED_SUFFIXES:
        return True
    if path.suffix != ".py":
        return False
    dotted = ".".join(path.with_suffix("").parts)
    return any(dotted == name or dotted.endswith(f".{name}") for name in extensions)


def _compare(
    change: FileChange,
    base: Mapping[str, bytes],
    oracle: Mapping[str, bytes],
    locations: tuple[set[CodeLocation], set[CodeLocation]],
    untraceable: list[str],
) -> None:
    """Add what *change* alters in one Python file to *locations* (base, oracle) and *untraceable*."""
    try:
        before = _Source.parse(base.get(change.base_path or "", b""))
        after = _Source.parse(oracle.get(change.oracle_path or "", b""))
    except (SyntaxError, ValueError):
        untraceable.append(change.path)
        return
    sides = (
        (before, after, change.base_path, change.base_lines, locations[0]),
        (after, before, change.oracle_path, change.oracle_lines, locations[1]),
    )
    unassigned = False
    for source, other, path, lines, side in sides:
        if path is None:
            continue
        functions = _changed_functions(source, other, lines)
        dependents, lost = _dependents(source, other, lines)
        unassigned = unassigned or lost
        for function in {*functions, *dependents}:
            if _is_compiling(function):
                untraceable.append(f"{path}:{function.name}")
            side.add(CodeLocation(path, _first_line(function)))
    if unassigned:
        untraceable.append(f"{change.path}: module level")


def _names(
    change: FileChange, base: Mapping[str, bytes], oracle: Mapping[str, bytes], benchmark_dir: str
) -> Iterator[str]:
    """Names of functions and classes of a changed file that a benchmark could use, tests and the suite left out."""
    path = PurePosixPath(change.path)
    if path.is_relative_to(benchmark_dir) or _is_beside_the_package(path):
        return
    content = oracle.get(change.oracle_path or "") or base.get(change.base_path or "") or b""
    for match in _DEFINITION.finditer(content.decode("utf-8", "replace")):
        if len(match[1]) >= SHORTEST_NAME and not match[1].startswith("_"):
            yield match[1]


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, Function]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function | ast.ClassDef):
            name = f"{prefix}{child.name}"
            if not isinstance(child, ast.ClassDef):
                yield name, child
            yield from _functions(child, f"{name}.")
        else:
            yield from _functions(child, prefix)


def _changed_functions(source: _Source, other: _Source, lines: frozenset[int]) -> set[Function]:
    """The innermost functions around *lines* that the other side does not have in the same form."""
    dumps = other.dumps()
    functions = set()
    for line in lines:
        around = [(name, function) for name, function in source.functions if _spans(function, line)]
        if around:
            name, innermost = max(around, key=lambda item: _first_line(item[1]))
            if (name, _dump(innermost)) not in dumps:
                functions.add(innermost)
    return functions


def _dependents(source: _Source, other: _Source, lines: frozenset[int]) -> tuple[set[Function], bool]:
    """Functions that see a change outside any function: those of a changed class, those that read a changed name.

    The second value tells whether something changed that no function of the file could be held to read.
    """
    kept = other.statements()
    dependents: set[Function] = set()
    unassigned = False
    for statement in _plain_statements(source.tree.body):
        if not any(_spans(statement, line) for line in lines) or ast.dump(statement) in kept:
            continue
        mentioned = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        bound = {node.id for node in mentioned if isinstance(node.ctx, ast.Store)}
        names = bound or {node.id for node in mentioned}
        owners = [node for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef) and statement in node.body]
        readers = {
            function
            for _, function in source.functions
            if any(owner.lineno <= function.lineno <= (owner.end_lineno or 0) for owner in owners)
            or any(isinstance(node, ast.Name) and node.id in names for node in ast.walk(function))
        }
        dependents |= readers
        unassigned = unassigned or not readers
    for owner in (node for node in ast.walk(source.tree) if isinstance(node, ast.ClassDef)):
        header = range(_first_line(owner), owner.body[0].lineno)
        headers = {_header(node) for node in ast.walk(other.tree) if isinstance(node, ast.ClassDef)}
        if any(line in header for line in lines) and _header(owner) not in headers:
            dependents |= {node for node in owner.body if isinstance(node, Function)}
    return dependents, unassigned


def _plain_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements outside functions that do something at import; imports, docstrings and dunder names do not count."""
    for statement in body:
        if isinstance(statement, Function | ast.Import | ast.ImportFrom):
            continue
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            continue
        if isinstance(statement, ast.Assign) and all(_is_inert(target) for target in statement.targets):
            continue
        nested = [getattr(statement, name, []) for name in ("body", "orelse", "finalbody")]
        handlers = [handler.body for handler in getattr(statement, "handlers", [])]
        if any(nested) or handlers:
            for part in (*nested, *handlers):
                yield from _plain_statements(part)
        else:
            yield statement


def _is_inert(target: ast.expr) -> bool:
    """Whether assigning to *target* changes no execution: `__version__`, `__all__` …, but not `__slots__`."""
    return isinstance(target, ast.Name) and target.id.startswith("__") and target.id != "__slots__"


def _spans(node: ast.stmt, line: int) -> bool:
    return _first_line(node) <= line <= (node.end_lineno or node.lineno)


def _first_line(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


def _dump(function: Function) -> str:
    """The function's meaning as text: no positions, comments or docstring."""
    first = function.body[0]
    has_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    body = function.body[1:] if has_docstring else function.body
    parts = [function.args, *function.decorator_list, *body]
    return f"{type(function).__name__} {function.name} " + " ".join(ast.dump(part) for part in parts)


def _header(owner: ast.ClassDef) -> str:
    parts = [*owner.bases, *owner.keywords, *owner.decorator_list]
    return f"{owner.name} " + " ".join(ast.dump(part) for part in parts)


def _is_compiling(function: Function) -> bool:
    """Whether a decorator compiles the function, so that it runs unseen."""
    names = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for decorator in function.decorator_list
        for node in ast.walk(decorator)
        if isinstance(node, ast.Attribute | ast.Name)
    }
    return bool(names & COMPILING_DECORATORS)
