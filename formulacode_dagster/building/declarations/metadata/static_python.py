"""Static evaluation of a Python script: the values its statements leave in its names."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from formulacode_dagster.building.declarations.python_source import parse_python

from .static_values import MOST_STEPS, Expressions, Unreadable, Value, bind


class _Return(Exception):
    def __init__(self, value: Value) -> None:
        self.value = value


@dataclass
class Script(Expressions):
    """One script: `run` evaluates its statements, `value` any of its expressions. Nothing is ever executed."""

    source: str = ""
    names: dict[str, Value] = field(default_factory=dict)
    conditional: dict[str, int] = field(default_factory=dict)
    """Names that code under an undecidable condition adds to, and its line."""
    on_call: Callable[[ast.Call, Mapping[str, Value]], None] | None = None
    """Called for every call statement, with the names known there."""

    def run(self) -> None:
        """Go through the module's statements in order. Raises SyntaxError when it is no Python of today."""
        self._block(parse_python(self.source).body, self.names)

    def call_function(self, function: ast.FunctionDef, node: ast.Call, names: Mapping[str, Value]) -> Value:
        """Return the value of *function*: its body is evaluated with its parameters bound."""
        inner = dict(self.names)
        parameters = [argument.arg for argument in function.args.args]
        for name, default in zip(reversed(parameters), reversed(function.args.defaults), strict=False):
            inner[name] = self.value(default, names)
        inner.update(zip(parameters, self._items(node.args, names), strict=False))
        if function.args.vararg is not None:
            inner[function.args.vararg.arg] = self._items(node.args[len(parameters) :], names)
        inner.update({key.arg: self.value(key.value, names) for key in node.keywords if key.arg})
        self._depth += 1
        try:
            self._block(function.body, inner)
        except _Return as returned:
            if isinstance(returned.value, Unreadable):
                raise Unreadable(function.name) from None
            return returned.value
        finally:
            self._depth -= 1
        return None

    def _block(self, statements: Iterable[ast.stmt], names: dict[str, Value]) -> None:
        for statement in statements:
            self._steps += 1
            if self._steps > MOST_STEPS:
                return
            self._statement(statement, names)

    def _statement(self, statement: ast.stmt, names: dict[str, Value]) -> None:
        match statement:
            case ast.FunctionDef(name=name):
                self.functions[name] = statement
            case ast.Assign(targets=targets, value=value):
                known_value = self._attempt(value, names)
                for target in targets:
                    self._assign(target, known_value, names)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(target, self._attempt(value, names), names)
            case ast.AugAssign(target=ast.Name(id=name) as target, op=ast.Add(), value=value):
                added = self._attempt(ast.BinOp(left=target, op=ast.Add(), right=value), names)
                if isinstance(added, Unreadable):
                    self.conditional.setdefault(name, statement.lineno)
                else:
                    names[name] = added
            case ast.Expr(value=ast.Call() as call):
                self._called(call, names)
            case ast.With(items=items, body=body):
                for item in items:
                    if isinstance(item.optional_vars, ast.Name):
                        names[item.optional_vars.id] = self._attempt(item.context_expr, names)
                self._block(body, names)
            case ast.If(test=test, body=body, orelse=orelse):
                decided = self._attempt(test, names)
                if isinstance(decided, Unreadable):
                    self._undecided([*body, *orelse], names)
                else:
                    self._block(body if decided else orelse, names)
            case ast.Try(body=body, orelse=orelse, finalbody=finalbody):
                self._block([*body, *orelse, *finalbody], names)
            case ast.For(target=target, iter=iterable, body=body):
                items_found = self._attempt(iterable, names)
                if isinstance(items_found, Unreadable):
                    self._undecided(body, names)
                    return
                for item in list(items_found):
                    bind(target, item, names)
                    self._block(body, names)
            case ast.Return(value=value):
                raise _Return(None if value is None else self._attempt(value, names))

    def _attempt(self, node: ast.expr, names: Mapping[str, Value]) -> Value:
        try:
            return self.value(node, names)
        except Unreadable as unreadable:
            return unreadable

    def _assign(self, target: ast.expr, value: Value, names: dict[str, Value]) -> None:
        match target:
            case ast.Subscript(value=ast.Name(id=name), slice=index):
                mapping, key = names.get(name), self._attempt(index, names)
                if isinstance(mapping, dict) and not isinstance(key, Unreadable | list | dict):
                    mapping[key] = value
            case ast.Name(id=name):
                names[name] = value
            case _ if isinstance(value, tuple | list):
                bind(target, value, names)

    def _called(self, call: ast.Call, names: dict[str, Value]) -> None:
        if self.on_call is not None:
            self.on_call(call, names)
        match call.func:
            case ast.Attribute(value=ast.Name(id=name), attr="append" | "extend" | "update" | "insert"):
                if isinstance(self._attempt(call, names), Unreadable) and name in names:
                    self.conditional.setdefault(name, call.lineno)
            case ast.Name(id=name) if name in self.functions:
                self._attempt(call, names)

    def _undecided(self, statements: Iterable[ast.stmt], names: dict[str, Value]) -> None:
        """Names that such code sets are no longer known; those it only adds to are known in part."""
        for node in (inner for statement in statements for inner in ast.walk(statement)):
            match node:
                case ast.Assign(targets=[ast.Name(id=name)]):
                    names[name] = Unreadable(f"set under a condition on line {node.lineno}")
                case (
                    ast.AugAssign(target=ast.Name(id=name))
                    | ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="append" | "extend" | "update"))
                ):
                    self.conditional.setdefault(name, node.lineno)
