"""When the code of a Python file runs: some as it is imported, the rest as its functions are called."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from formulacode_dagster.building.declarations.python_source import parse_python

Function = ast.FunctionDef | ast.AsyncFunctionDef
OPEN = frozenset({("", "*"), ("", "__getattr__")})
"""Names by which a file provides others that it does not list."""


@dataclass(frozen=True)
class TopStatement:
    """A statement outside functions, or the header of a function or class."""

    syntax: str
    names: frozenset[tuple[str, str]]
    """Names that it may bind, each with the class around it."""
    only_binds: bool
    """True if it has no effect on code that does not use its names."""


@dataclass(frozen=True)
class ModuleShape:
    """The statements that importing a file executes, in order, and the lines inside its functions."""

    statements: tuple[TopStatement, ...]
    bodies: frozenset[int]

    @classmethod
    def of(cls, content: bytes) -> ModuleShape:
        """Read a file; raises SyntaxError, ValueError or RecursionError if this interpreter cannot parse it."""
        tree = parse_python(content)
        functions = [node for node in ast.walk(tree) if isinstance(node, Function)]
        bodies = {line for node in functions for line in range(node.body[0].lineno, (node.end_lineno or 0) + 1)}
        for node in functions:
            node.body = []
        return cls(tuple(_statements(tree.body, "")), frozenset(bodies))

    def is_part_of(self, other: ModuleShape) -> bool:
        """Return True if importing *other* executes the same statements, and otherwise only binds new names."""
        later = iter(other.statements)
        if not all(statement in later for statement in self.statements):
            return False
        bound = frozenset[tuple[str, str]]().union(*(statement.names for statement in self.statements))
        added = Counter(other.statements) - Counter(self.statements)
        return all(statement.only_binds and bound.isdisjoint(statement.names | OPEN) for statement in added)


def shapes_of(sources: Mapping[str, bytes]) -> dict[str, ModuleShape]:
    """Return the shapes of those of the files *sources* that this interpreter can parse, by path."""
    shapes = {}
    for path, content in sources.items():
        with suppress(SyntaxError, ValueError, RecursionError):
            shapes[path] = ModuleShape.of(content)
    return shapes


def _statements(body: Iterable[ast.stmt], scope: str) -> Iterator[TopStatement]:
    for node in body:
        if isinstance(node, ast.ClassDef):
            inside, node.body = node.body, []
            yield _statement(node, scope)
            yield from _statements(inside, f"{scope}{node.name}.")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for name in list(node.names):
                node.names = [name]
                yield _statement(node, scope)
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            yield _statement(node, scope)


def _statement(node: ast.stmt, scope: str) -> TopStatement:
    names = frozenset(_bound(node))
    match node:
        case ast.FunctionDef(decorator_list=[]) | ast.AsyncFunctionDef(decorator_list=[]):
            only_binds = True
        case ast.Assign(targets):
            only_binds = not scope and all(isinstance(target, ast.Name) for target in targets)
        case ast.AnnAssign(target=ast.Name()) | ast.Import():
            only_binds = not scope
        case ast.ImportFrom(module):
            only_binds = not scope and module != "__future__"
        case _:
            only_binds = False
    # Python uses special names by itself
    only_binds = only_binds and not any(name.startswith(("__", "*")) for name in names)
    return TopStatement(f"{scope} {ast.dump(node)}", frozenset((scope, name) for name in names), only_binds)


def _bound(statement: ast.stmt) -> Iterator[str]:
    for node in ast.walk(statement):
        if isinstance(node, Function | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield (node.asname or node.name).partition(".")[0]
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
