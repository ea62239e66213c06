"""Static evaluation of Python expressions: literals, names, files it reads, simple functions.

It interprets a small, harmless subset of Python. Everything else becomes `Unreadable`; no code of the repository is
ever executed.
"""

from __future__ import annotations

import ast
import operator
import posixpath
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from .static_limits import LARGEST, MOST_WEIGHT, WIDTH, may_blow_up, weight

Value = Any
"""Any value in a script."""

ReadFile = Callable[[str], str | None]

MOST_STEPS = 20_000
_MOST_DEPTH = 12

_TEXT_METHODS = frozenset({"count", "endswith", "find", "format", "join", "lower", "lstrip", "partition"}) | frozenset(
    {"replace", "rpartition", "rstrip", "split", "splitlines", "startswith", "strip", "title", "upper"}
)
_LIST_METHODS = frozenset({"append", "extend", "insert", "index", "copy", "remove", "sort", "reverse", "count"})
_MAPPING_METHODS = frozenset({"get", "items", "keys", "values", "update", "copy", "pop", "setdefault"})
_BUILTINS: dict[str, Callable[..., Value]] = {
    **{function.__name__: function for function in (list, tuple, sorted, len, bool, int, any, all)},
    "str": lambda value="": value if isinstance(value, str) else str(int(value)),
    "set": lambda items=(): list(dict.fromkeys(items)),
    "sum": lambda items, start=0: type(start)(chain(start, *items)) if isinstance(start, list | tuple) else sum(items),
    "zip": lambda *columns: list(zip(*columns, strict=False)),
}
_CONSTANTS: dict[str, Value] = {
    "sys.platform": "linux",
    "os.name": "posix",
    "os.sep": "/",
    "os.linesep": "\n",
    "__file__": "setup.py",
    "__name__": "__main__",
}
_FIXED_CALLS: dict[str, Value] = {
    "platform.system": "Linux",
    "system": "Linux",
    "platform.python_implementation": "CPython",
    "platform.machine": "x86_64",
    "os.getcwd": "",
    "Path.cwd": "",
    "pathlib.Path.cwd": "",
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Value, Value], Value]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
_OLDEST, _NEWEST = (3, 6, 0), (3, 99, 0)


class Unreadable(Exception):
    """The value depends on something that only running the script would reveal."""


@dataclass(frozen=True)
class _VersionInfo:
    """`sys.version_info` of an interpreter not chosen yet: any we know."""


@dataclass(frozen=True)
class OpenFile:
    """A file of the repository that the script has opened."""

    text: str

    def __iter__(self) -> Iterator[str]:
        return iter(self.text.splitlines(keepends=True))


@dataclass
class Expressions:
    """Evaluates expressions. `static_python.Script` adds the statements around them."""

    read_file: ReadFile
    functions: dict[str, ast.FunctionDef] = field(default_factory=dict)
    _steps: int = 0
    _depth: int = 0
    _weight: int = 0

    def call_function(self, function: ast.FunctionDef, node: ast.Call, names: Mapping[str, Value]) -> Value:
        """The value that *function* returns for the arguments of *node*; raises Unreadable."""
        raise Unreadable(f"{function.name} on line {node.lineno} with {len(names)} names")

    def value(self, node: ast.expr, names: Mapping[str, Value]) -> Value:
        """Return the value of *node*; raises Unreadable if it cannot be determined."""
        self._steps += 1
        if self._steps > MOST_STEPS or self._depth > _MOST_DEPTH or self._weight > MOST_WEIGHT:
            raise Unreadable("too long")
        try:
            result = self._value(node, names)
        except (TypeError, ValueError, KeyError, IndexError, AttributeError, ZeroDivisionError, OverflowError) as error:
            raise Unreadable(str(error)) from error
        if isinstance(result, Unreadable):
            # a name or an entry that was set to it
            raise Unreadable(str(result))
        self._charge(result)
        if isinstance(result, str | list | tuple) and len(result) > LARGEST:
            raise Unreadable("too large")
        return result

    def _charge(self, value: Value) -> None:
        """Count *value*, which is about to be used; raises Unreadable when the script came to too much."""
        self._weight += weight(value)
        if self._weight > MOST_WEIGHT:
            raise Unreadable("too large")

    def _value(self, node: ast.expr, names: Mapping[str, Value]) -> Value:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return names[name] if name in names else _constant(name)
            case ast.Attribute():
                return self._attribute(node, names)
            case ast.List(elts=items):
                return self._items(items, names)
            case ast.Tuple(elts=items):
                return tuple(self._items(items, names))
            case ast.Set(elts=items):
                return list(dict.fromkeys(self._items(items, names)))
            case ast.Dict(keys=keys, values=values):
                return self._mapping(keys, values, names)
            case ast.JoinedStr(values=parts):
                return "".join(str(self.value(part, names)) for part in parts)
            case ast.FormattedValue(value=part):
                return self.value(part, names)
            case ast.BinOp():
                return self._binary(node, names)
            case ast.BoolOp(op=op, values=values):
                result: Value = None
                for part in values:
                    result = self.value(part, names)
                    if bool(result) is isinstance(op, ast.Or):
                        break
                return result
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return not self.value(operand, names)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return -self.value(operand, names)
            case ast.Compare():
                return self._compare(node, names)
            case ast.IfExp(test=test, body=body, orelse=orelse):
                return self.value(body if self.value(test, names) else orelse, names)
            case ast.Subscript(value=base, slice=index):
                return self._subscript(self.value(base, names), index, names)
            case ast.ListComp(elt=element, generators=[only]) | ast.GeneratorExp(elt=element, generators=[only]):
                return self._comprehension(element, only, names)
            case ast.Call():
                return self._call(node, names)
        raise Unreadable(type(node).__name__)

    def _items(self, items: Iterable[ast.expr], names: Mapping[str, Value]) -> list[Value]:
        values: list[Value] = []
        for item in items:
            if isinstance(item, ast.Starred):
                values.extend(self.value(item.value, names))
            else:
                values.append(self.value(item, names))
        return values

    def _mapping(
        self, keys: list[ast.expr | None], values: list[ast.expr], names: Mapping[str, Value]
    ) -> dict[Value, Value]:
        """One unreadable entry does not take the rest with it."""
        mapping: dict[Value, Value] = {}
        for key, item in zip(keys, values, strict=True):
            try:
                value: Value = self.value(item, names)
            except Unreadable as unreadable:
                value = unreadable
            if key is None:
                mapping.update(value if isinstance(value, dict) else {})
            else:
                mapping[self.value(key, names)] = value
        return mapping

    def _attribute(self, node: ast.Attribute, names: Mapping[str, Value]) -> Value:
        dotted = ast.unparse(node)
        if dotted == "sys.version_info":
            return _VersionInfo()
        if dotted in _CONSTANTS:
            return _CONSTANTS[dotted]
        base = self.value(node.value, names)
        if isinstance(base, _VersionInfo) and node.attr == "major":
            return 3
        if isinstance(base, str) and node.attr in ("parent", "name"):
            return posixpath.dirname(base) if node.attr == "parent" else posixpath.basename(base)
        raise Unreadable(dotted)

    def _binary(self, node: ast.BinOp, names: Mapping[str, Value]) -> Value:
        left, right = self.value(node.left, names), self.value(node.right, names)
        match node.op:
            case ast.Add():
                return left + right
            case ast.Mod() if isinstance(left, str) and not WIDTH.search(left) and weight(right) < LARGEST:
                return left % right
            case ast.Div() if isinstance(left, str) and isinstance(right, str):
                return posixpath.join(left, right)
            case ast.BitOr() if isinstance(left, dict) and isinstance(right, dict):
                return left | right
        raise Unreadable("operator")

    def _compare(self, node: ast.Compare, names: Mapping[str, Value]) -> Value:
        values = [self.value(part, names) for part in (node.left, *node.comparators)]
        if not any(isinstance(value, _VersionInfo) for value in values):
            return self._chain(node.ops, values)
        answers = {
            self._chain(node.ops, [bounds if isinstance(v, _VersionInfo) else v for v in values])
            for bounds in (_OLDEST, _NEWEST)
        }
        if len(answers) > 1:
            raise Unreadable("depends on the interpreter")
        return answers.pop()

    def _chain(self, ops: list[ast.cmpop], values: list[Value]) -> bool:
        pairs = zip(ops, values, values[1:], strict=False)
        return all(bool(_COMPARISONS[type(op)](left, right)) for op, left, right in pairs)

    def _subscript(self, base: Value, index: ast.expr, names: Mapping[str, Value]) -> Value:
        if isinstance(base, _VersionInfo):
            if isinstance(index, ast.Slice):
                return base
            if self.value(index, names) == 0:
                return 3
            raise Unreadable("depends on the interpreter")
        if isinstance(index, ast.Slice):
            ends = [None if end is None else self.value(end, names) for end in (index.lower, index.upper, index.step)]
            return base[slice(*ends)]
        return base[self.value(index, names)]

    def _comprehension(self, element: ast.expr, only: ast.comprehension, names: Mapping[str, Value]) -> list[Value]:
        inner = dict(names)
        elements: list[Value] = []
        for item in list(self.value(only.iter, names)):
            bind(only.target, item, inner)
            if all(self.value(test, inner) for test in only.ifs):
                elements.append(self.value(element, inner))
        return elements

    def _call(self, node: ast.Call, names: Mapping[str, Value]) -> Value:
        function = node.func
        dotted = ast.unparse(function)
        last = dotted.rpartition(".")[2]
        if dotted in ("os.environ.get", "os.getenv", "environ.get", "getenv"):
            return self.value(node.args[1], names) if len(node.args) > 1 else None
        if dotted in _FIXED_CALLS:
            return _FIXED_CALLS[dotted]
        if isinstance(function, ast.Name) and function.id in self.functions:
            return self.call_function(self.functions[function.id], node, names)
        if (last in ("open", "parse_requirements") and not isinstance(function, ast.Attribute)) or dotted in (
            "io.open",
            "codecs.open",
        ):
            file = self._open(self.value(node.args[0], names))
            return file if last == "open" else file.text.splitlines()
        if dotted in ("os.path.join", "op.join", "path.join", "osp.join", "join"):
            return posixpath.join(*self._items(node.args, names))
        if last in ("dirname",):
            return posixpath.dirname(self.value(node.args[0], names))
        if last in ("abspath", "realpath", "Path", "normpath", "fspath") and node.args:
            return posixpath.join(*self._items(node.args, names))
        if isinstance(function, ast.Name) and function.id == "dict":
            # as a literal: one unreadable entry does not take the rest with it
            keys: list[ast.expr | None] = [ast.Constant(key.arg) if key.arg else None for key in node.keywords]
            return dict(*self._items(node.args, names)) | self._mapping(keys, [k.value for k in node.keywords], names)
        if isinstance(function, ast.Name) and function.id in _BUILTINS:
            keywords = {key.arg: self.value(key.value, names) for key in node.keywords if key.arg}
            return _BUILTINS[function.id](*self._items(node.args, names), **keywords)
        if isinstance(function, ast.Attribute):
            return self._method(self.value(function.value, names), function.attr, node, names)
        raise Unreadable(dotted)

    def _open(self, path: Value) -> OpenFile:
        text = self.read_file(path) if isinstance(path, str) else None
        if text is None:
            raise Unreadable(f"no file {path}")
        self._charge(text)
        return OpenFile(text)

    def _method(self, base: Value, name: str, node: ast.Call, names: Mapping[str, Value]) -> Value:
        if isinstance(base, OpenFile):
            if name in ("read", "readlines"):
                return base.text if name == "read" else base.text.splitlines(keepends=True)
        elif isinstance(base, str):
            if name in ("resolve", "absolute"):
                return base
            if name == "joinpath":
                return posixpath.join(base, *self._items(node.args, names))
            if name == "read_text":
                return self._open(base).text
            if name == "open":
                return self._open(base)
            if name in ("decode", "encode"):
                return base
        methods = (
            _TEXT_METHODS if isinstance(base, str) else _LIST_METHODS if isinstance(base, list) else _MAPPING_METHODS
        )
        if not isinstance(base, str | list | dict) or name not in methods:
            raise Unreadable(name)
        keywords = {key.arg: self.value(key.value, names) for key in node.keywords if key.arg}
        arguments = self._items(node.args, names)
        if isinstance(base, str) and may_blow_up(base, name, arguments):
            raise Unreadable("too large")
        result: Value = getattr(base, name)(*arguments, **keywords)
        return list(result) if isinstance(base, dict) and name in ("items", "keys", "values") else result


def _constant(name: str) -> Value:
    if name in _CONSTANTS:
        return _CONSTANTS[name]
    raise Unreadable(name)


def bind(target: ast.expr, value: Value, names: dict[str, Value]) -> None:
    """Set the names that *target* spells from *value*."""
    match target:
        case ast.Name(id=name):
            names[name] = value
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            for part, item in zip(parts, list(value), strict=False):
                bind(part, item, names)
