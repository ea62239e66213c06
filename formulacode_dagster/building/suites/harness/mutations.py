"""Small faults put into a file's code as it is imported, in memory: good tests notice them."""

from __future__ import annotations

import ast
import importlib.machinery
import os
from typing import TYPE_CHECKING, Any

from .lines import which_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .answers import Emit

MOST = 100
"""Only those of a file on the given lines."""
_FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_SWAPPED: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift, ast.RShift: ast.LShift,
}  # fmt: skip


def mutations(source: bytes, lines: frozenset[int]) -> list[dict[str, object]]:
    """Return mutation points on *lines*: line, column and kind, in the order of KINDS and of the file."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):
        return []
    places = [
        (order, node.lineno, node.col_offset, kind)
        for node in _nodes(tree)
        if getattr(node, "lineno", None) in lines
        for order, (kind, alter) in enumerate(KINDS.items())
        if alter(node) is not None
    ]
    return [{"line": line, "column": column, "kind": kind} for _, line, column, kind in sorted(places)[:MOST]]


def mutated(source: bytes, mutation: dict[str, Any]) -> ast.AST | None:
    """Return the tree of *source* with the mutation; None if it has no such place."""
    tree = ast.parse(source)
    wanted = mutation["line"], mutation["column"]
    for parent in _nodes(tree):
        for name, value in ast.iter_fields(parent):
            for place, node in enumerate(value if isinstance(value, list) else [value]):
                if (getattr(node, "lineno", None), getattr(node, "col_offset", None)) != wanted:
                    continue
                altered = KINDS[mutation["kind"]](node)
                if altered is None:
                    continue
                if isinstance(value, list):
                    value[place] = ast.copy_location(altered, node)
                else:
                    setattr(parent, name, ast.copy_location(altered, node))
                return ast.fix_missing_locations(tree)
    return None


def mutate_on_import(mutation: dict[str, Any], emit: Emit) -> None:
    """Apply the mutation to the file `path` whenever it is imported, in the checkout or as installed."""
    loader: Any = importlib.machinery.SourceFileLoader
    original = loader.get_code

    def get_code(self: Any, fullname: str) -> Any:
        file = self.get_filename(fullname)
        if which_file(os.path.abspath(file), [mutation["path"]]) is None:
            return original(self, fullname)
        tree = mutated(self.get_data(file), mutation)
        if tree is None:
            return original(self, fullname)
        emit(event="mutated")
        return compile(tree, file, "exec", dont_inherit=True)  # type: ignore[call-overload]  # a module's tree

    loader.get_code = get_code


def _nodes(tree: ast.AST) -> Iterator[Any]:
    """Return every node but those in f-strings, whose positions are wrong in older interpreters."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if not isinstance(node, ast.JoinedStr):
            yield node
            pending.extend(ast.iter_child_nodes(node))


def _number(node: Any) -> Any:
    """Return the value of a constant; None for anything else (CPython 3.7 has a type for each)."""
    return getattr(node, "value", getattr(node, "n", None)) if _is(node, "Constant", "Num", "NameConstant") else None


def _is(node: Any, *names: str) -> bool:
    return type(node).__name__ in names


def _literal(value: object) -> ast.expr:
    return ast.parse(repr(value), mode="eval").body


def _returned(node: Any) -> ast.AST | None:
    if not isinstance(node, ast.Return) or node.value is None:
        return None
    nothing = _is(node.value, "Constant", "NameConstant") and _number(node.value) is None
    return None if nothing else ast.Return(value=_literal(None))


def _compared(node: Any) -> ast.AST | None:
    if not isinstance(node, ast.Compare) or len(node.ops) > 1:
        return None
    return ast.Compare(left=node.left, ops=[_FLIPPED[type(node.ops[0])]()], comparators=node.comparators)


def _computed(node: Any) -> ast.AST | None:
    if not isinstance(node, (ast.BinOp, ast.AugAssign)) or type(node.op) not in _SWAPPED:
        return None
    operator = _SWAPPED[type(node.op)]()
    if isinstance(node, ast.AugAssign):
        return ast.AugAssign(target=node.target, op=operator, value=node.value)
    # texts are put together or filled in: another operator would only raise
    texts = any(_is(side, "Str", "JoinedStr") or isinstance(_number(side), str) for side in (node.left, node.right))
    return None if texts else ast.BinOp(left=node.left, op=operator, right=node.right)


def _constant(node: Any) -> ast.AST | None:
    value = _number(node)
    if isinstance(value, bool):
        return _literal(not value)
    return _literal(value + 1) if isinstance(value, (int, float)) and abs(value) < float("inf") else None


def _deleted(node: Any) -> ast.AST | None:
    """A statement without which the others still have all their names."""
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    is_kept_elsewhere = isinstance(node, ast.Assign) and all(
        isinstance(target, (ast.Attribute, ast.Subscript)) for target in node.targets
    )
    return ast.Pass() if is_call or is_kept_elsewhere or isinstance(node, ast.AugAssign) else None


KINDS: dict[str, Callable[[Any], ast.AST | None]] = {
    "returned": _returned,
    "compared": _compared,
    "computed": _computed,
    "constant": _constant,
    "deleted": _deleted,
}
"""The mutations, most noticeable first; a function that alters a node, or None if it cannot."""
