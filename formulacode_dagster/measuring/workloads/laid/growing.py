"""Larger inputs for a test: what its file says of sizes is multiplied, and its lists are tiled, by rules declared here.

This file was laid beside the repository's benchmarks and is no part of it. What the test asserts stays as it is: one
that fails with larger inputs is no workload.
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
"""What the names of functions end with that make a graph of so many nodes."""
_NAMES = {"n", "N", "size", "num", "count", "length", "periods", "shape", "repeats", "reps", "width", "height"}
_PREFIXES = ("n_", "num_", "N_")
"""Of keywords and variables that hold a size."""
_LEAST = 2
"""The smallest number that is a size, and the shortest list that is data; smaller ones are mostly flags."""


def grow(module: ModuleType, rule: str, factor: int) -> None:
    """Give the functions of *module* the code that *rule* makes of them.

    Raises NotImplementedError, which skips a benchmark, where the rule changes nothing, or one of several does not.
    """
    codes = _grown(inspect.getsource(module), str(module.__file__), frozenset(rule.split(" and ")), factor)
    if not codes:
        raise NotImplementedError("nothing in the file of the test can be grown by the rule of " + rule)
    for function in _functions(module):
        code = codes.get((function.__code__.co_name, function.__code__.co_firstlineno))
        is_of_file = function.__globals__ is vars(module)
        if is_of_file and code is not None and code.co_freevars == function.__code__.co_freevars:
            function.__code__ = code


def grown_code(code: str, rule: str, factor: int) -> str:
    """The statements *code* by *rule*; `` where it changes nothing, or one of several rules does not."""
    larger = _Larger(frozenset(rule.split(" and ")), factor)
    tree = ast.fix_missing_locations(larger.visit(ast.parse(code)))
    return ast.unparse(tree) if larger.is_applied else ""


@functools.lru_cache(8)
def _grown(source: str, path: str, rules: frozenset[str], factor: int) -> dict[tuple[str, int], CodeType]:
    """The code of all functions, by name and first line; none where one of *rules* changes nothing."""
    tree = ast.parse(source)
    larger = _Larger(rules, factor)
    # a module's own statements have been executed: functions alone can be changed
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
        """Whether each of the rules changed something: sizes and sequences are sizes alone where there is no list."""
        return self._applied == self._rules

    def is_done(self, node: ast.AST) -> bool:
        """Whether it stands in a function that was changed."""
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
        # what picks elements is no data
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
        # of a class's static methods, and of what pytest 8.4 makes of a fixture
        inner = getattr(value, "_fixture_function", getattr(value, "__func__", value))
        if inspect.isclass(inner):
            if inspect.ismodule(owner) and inner.__module__ == owner.__name__:
                yield from _functions(inner)
        # of anything else that is called, `mock.call` has no end of what it wraps
        elif inspect.isfunction(inner):
            yield inspect.unwrap(inner)
