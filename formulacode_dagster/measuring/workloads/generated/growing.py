"""Larger inputs for a test: sizes in its file are multiplied, and its lists are tiled, by rules declared here.

This file was generated next to the repository's benchmarks and is not part of it. The test's assertions stay as they
are: a test that fails with larger inputs is not a workload.
"""

from __future__ import annotations

import ast
import functools
import inspect
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, FunctionType, ModuleType
    from typing import Any

SIZES, SEQUENCES, REPEATS = "sizes", "sequences", "repeats"
_RANGES = {"range", "arange"}
_SHAPED = {
    *("zeros", "ones", "empty", "full", "eye", "identity", "reshape"),
    *("rand", "randn", "random", "random_sample", "standard_normal", "permutation"),
}
"""Calls whose first argument is a size, or a shape whose first number is."""
_GRAPHS = "_graph"
"""Suffixes of function names that create a graph with that many nodes."""
_NAMES = {"n", "N", "size", "num", "count", "length", "periods", "shape", "repeats", "reps", "width", "height"}
_PREFIXES = ("n_", "num_", "N_")
"""Names of keywords and variables that contain a size."""
_LEAST = 2
"""The smallest number that is a size, and the shortest list that is data; smaller ones are mostly flags."""


def grow(module: ModuleType, rule: str, factor: int) -> None:
    """Give the functions of *module* the code that *rule* makes of them.

    Raises NotImplementedError, which skips a benchmark, if the rule, or one of several, changes nothing.
    """
    codes = _grown(inspect.getsource(module), str(module.__file__), frozenset(rule.split(" and ")), factor)
    if not codes:
        raise NotImplementedError("no value in the test's file can be scaled by the rule of " + rule)
    for function in _functions(module):
        code = codes.get((function.__code__.co_name, function.__code__.co_firstlineno))
        is_of_file = function.__globals__ is vars(module)
        if is_of_file and code is not None and code.co_freevars == function.__code__.co_freevars:
            function.__code__ = code


def grown_code(code: str, rule: str, factor: int) -> str:
    """Return the statements *code* scaled by *rule*; empty if it, or one of several rules, changes nothing."""
    larger = _Larger(frozenset(rule.split(" and ")), factor)
    tree = ast.fix_missing_locations(larger.visit(ast.parse(code)))
    return ast.unparse(tree) if larger.is_applied else ""


@functools.lru_cache(8)
def _grown(source: str, path: str, rules: frozenset[str], factor: int) -> dict[tuple[str, int], CodeType]:
    """Return the code of all functions by name and first line; none if one of *rules* changes nothing."""
    tree = ast.parse(source)
    larger = _Larger(rules, factor)
    # a module's own statements have already run: only functions can be changed
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not larger.is_done(node):
            node.body = [larger.visit(statement) for statement in node.body]
    if not larger.is_applied:
        return {}
    compiled = compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)
    return {(code.co_name, code.co_firstlineno): code for code in _codes(compiled)}


class _Larger(ast.NodeTransformer):
    def __init__(self, rules: frozenset[str], factor: int) -> None:
        self._rules, self._factor = rules, factor
        self._applied: set[str] = set()
        self._done: set[ast.AST] = set()

    @property
    def is_applied(self) -> bool:
        """Return True if each of the rules changed something; without lists, sizes and sequences equals sizes."""
        return self._applied == self._rules

    def is_done(self, node: ast.AST) -> bool:
        """Return True if it is in a changed function."""
        return node in self._done

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._done.add(node)
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        self._done.add(node)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if SIZES in self._rules:
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            place = len(node.args[:2]) - 1 if name in _RANGES else 0
            if node.args and (name in _RANGES or name in _SHAPED or name.endswith(_GRAPHS)):
                node.args[place] = self._multiplied(node.args[place])
            for keyword in node.keywords:
                if _is_size(keyword.arg or ""):
                    keyword.value = self._multiplied(keyword.value)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        self.generic_visit(node)
        names = [getattr(target, "attr", getattr(target, "id", "")) for target in node.targets]
        if SIZES in self._rules and any(map(_is_size, names)):
            node.value = self._multiplied(node.value)
        return node

    def visit_List(self, node: ast.List) -> ast.AST:
        # only the outermost: rows are tiled, and stay as they are
        if SEQUENCES in self._rules and len(node.elts) >= _LEAST and isinstance(node.ctx, ast.Load):
            return self._times(node, SEQUENCES)
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        # an index is not data
        node.value = self.visit(node.value)
        return node

    def _multiplied(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Tuple) and node.elts:
            node.elts[0] = self._multiplied(node.elts[0])
            return node
        # CPython 3.7 has numbers of their own kind
        number = node.value if hasattr(node, "value") else getattr(node, "n", None)
        return self._times(node, SIZES) if type(number) is int and number >= _LEAST else node

    def _times(self, node: ast.expr, rule: str) -> ast.expr:
        self._applied.add(rule)
        factor = ast.parse(str(self._factor), mode="eval").body
        return ast.copy_location(ast.BinOp(left=node, op=ast.Mult(), right=factor), node)


def _is_size(name: str) -> bool:
    return name in _NAMES or name.startswith(_PREFIXES)


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if inspect.iscode(constant):
            yield constant
            yield from _codes(constant)


def _functions(owner: Any) -> Iterator[FunctionType]:
    """The plain functions of a module, its classes, and its fixtures."""
    for value in list(vars(owner).values()):
        # static methods of a class, and pytest 8.4's fixture objects
        inner = getattr(value, "_fixture_function", getattr(value, "__func__", value))
        if inspect.isclass(inner):
            if inspect.ismodule(owner) and inner.__module__ == owner.__name__:
                yield from _functions(inner)
        # for other callables: `mock.call` wraps itself without end
        elif inspect.isfunction(inner):
            yield inspect.unwrap(inner)
