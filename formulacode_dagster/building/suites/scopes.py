"""Names that a benchmark module's statements bind, read without running it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from formulacode_dagster.building.declarations.python_source import parse_python

_KEEPS_THE_FUNCTION = frozenset(
    {"classmethod", "parameterize", "parameterize_class_with", "parameterize_func_with", "skip_for_params"}
    | {"skip_params_if", "staticmethod", "timeout_at", "timeout_class_at", "timeout_func_at"}
)
_NO_FUNCTION = frozenset({"cached_property", "property", "skip_benchmark"})
MOST_VALUES = 16
"""Possible values of one name; with more it may be anything."""
_DECIDES = frozenset({"__name__", "__qualname__", "benchmark_name", "skip_benchmark"})


@dataclass(frozen=True)
class Function:
    """A function; *name* is the value of `benchmark_name`, else its own."""

    name: str
    renamed: bool = False


@dataclass(frozen=True)
class Class:
    """A class: names of its bases as written (`` for any other expression), and the names its body binds."""

    name: str
    bases: tuple[str, ...]
    members: Scope
    abstract: bool = False
    """A member is marked abstract: the class itself gives no benchmark."""
    certain: bool = True
    """No decorator or metaclass may change it."""


@dataclass(frozen=True)
class ImportReference:
    """Something of another module: `from .module import name`, level counted in dots; of this one with level -1."""

    module: str
    level: int
    name: str


@dataclass(frozen=True)
class PlainValue:
    """No function and no class."""


@dataclass(frozen=True)
class Unknown:
    """Anything: only running the module would show."""


Definition = Function | Class | ImportReference | PlainValue | Unknown


@dataclass(frozen=True)
class Binding:
    """A possible value of a name; certain if it is there however the import of the module goes."""

    definition: Definition
    certain: bool = True


@dataclass
class Scope:
    """Names of a module or class body, in the order they were bound."""

    names: dict[str, list[Binding]] = field(default_factory=dict)
    stars: list[tuple[ImportReference, bool]] = field(default_factory=list)
    public: tuple[str, ...] | None = None
    """`__all__`, if it is a literal."""

    def bind(self, name: str, definition: Definition, *, certain: bool) -> None:
        """Bind *name*; under a condition its earlier values remain possible, each once."""
        if not certain:
            self.doubt(name)
        binding = Binding(definition, certain)
        before = [] if certain else [other for other in self.names.get(name, []) if other != binding]
        may_be_any = len(before) == MOST_VALUES
        self.names[name] = [Binding(Unknown(), certain=False)] if may_be_any else [*before, binding]

    def doubt(self, name: str) -> None:
        """*name* may have been changed or taken away."""
        if name in self.names:
            self.names[name] = [replace(binding, certain=False) for binding in self.names[name]]


def read_scope(source: str) -> Scope:
    """The names of the module *source*. Raises SyntaxError or ValueError when it is no Python of today."""
    scope = Scope()
    _Reader(scope).block(parse_python(source).body, certain=True)
    return scope


def _last(node: ast.expr) -> str:
    """`skip_for_params` of `asv_runner.benchmarks.mark.skip_for_params([...])`."""
    return ast.unparse(node.func if isinstance(node, ast.Call) else node).rpartition(".")[2]


class _Reader:
    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def block(self, statements: Iterable[ast.stmt], *, certain: bool) -> None:
        for statement in statements:
            self._statement(statement, certain)

    def _statement(self, statement: ast.stmt, certain: bool) -> None:
        def bind(name: str, definition: Definition) -> None:
            self.scope.bind(name, definition, certain=certain)

        match statement:
            case ast.FunctionDef(name=name, decorator_list=decorators):
                marks = {_last(decorator) for decorator in decorators}
                known = marks <= _KEEPS_THE_FUNCTION
                definition = PlainValue() if marks & _NO_FUNCTION else Function(name)
                self.scope.bind(name, definition, certain=certain and known)
            case ast.ClassDef(name=name):
                bind(name, _class_of(statement))
            case ast.ImportFrom(module=module, names=aliases, level=level):
                for alias in aliases:
                    reference = ImportReference(module or "", level, alias.name)
                    if alias.name == "*":
                        self.scope.stars.append((reference, certain))
                    else:
                        bind(alias.asname or alias.name, reference)
            case ast.Import(names=aliases):
                for alias in aliases:
                    bind(alias.asname or alias.name.partition(".")[0], PlainValue())
            case ast.Assign(targets=targets, value=value):
                self._calls(value)
                for target in targets:
                    self._assign(target, value, certain)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._calls(value)
                self._assign(target, value, certain)
            case ast.Delete(targets=targets):
                for target in targets:
                    self._delete(target, certain)
            case ast.Expr(value=value):
                self._calls(value)
            case ast.If(test=test, body=body, orelse=orelse):
                if "__name__" not in ast.unparse(test):
                    self.block([*body, *orelse], certain=False)
            case ast.With(items=items, body=body):
                for item in items:
                    self._other_targets(item.optional_vars)
                self.block(body, certain=False)
            case ast.Try(body=body, handlers=handlers, orelse=orelse, finalbody=finalbody):
                inner = [inner for handler in handlers for inner in handler.body]
                self.block([*body, *inner, *orelse], certain=False)
                self.block(finalbody, certain=certain)
            case ast.For(target=target, iter=iterable, body=body, orelse=orelse):
                self._calls(iterable)
                self._other_targets(target)
                self.block([*body, *orelse], certain=False)
            case ast.While(body=body, orelse=orelse):
                self.block([*body, *orelse], certain=False)
            case ast.AsyncFunctionDef(name=name):
                bind(name, Unknown())

    def _assign(self, target: ast.expr, value: ast.expr, certain: bool) -> None:
        match target:
            case ast.Name(id="__all__"):
                self.scope.public = _literal_names(value) if certain else None
            case ast.Name(id=name):
                self.scope.bind(name, _definition_of(value, name), certain=certain)
            case ast.Attribute(value=ast.Name(id=owner), attr=attribute):
                self._attribute(owner, attribute, value, certain)
            case ast.Attribute(value=inner, attr=attribute) if attribute in _DECIDES:
                self.scope.doubt(ast.unparse(inner).partition(".")[0])
            case ast.Subscript():
                self._calls(target.value)
            case _:
                self._other_targets(target)

    def _attribute(self, owner: str, attribute: str, value: ast.expr, certain: bool) -> None:
        """`time_x.benchmark_name = "…"`, `Suite.time_x = …`: decides whether and how asv names it."""
        bindings = self.scope.names.get(owner, [])
        match attribute, value, bindings:
            case "benchmark_name", ast.Constant(value=str() as name), [Binding(definition=Function())] if certain:
                self.scope.names[owner] = [replace(bindings[0], definition=Function(name, renamed=True))]
                return
        if attribute in _DECIDES:
            self.scope.doubt(owner)
        for binding in bindings:
            if isinstance(binding.definition, Class):
                binding.definition.members.bind(
                    attribute, _definition_of(value, attribute, outside=True), certain=False
                )

    def _delete(self, target: ast.expr, certain: bool) -> None:
        match target:
            case ast.Name(id=name) if certain:
                self.scope.names.pop(name, None)
            case _:
                self.scope.doubt(ast.unparse(target).partition(".")[0])

    def _other_targets(self, target: ast.expr | None) -> None:
        for node in ast.walk(target) if target is not None else ():
            if isinstance(node, ast.Name):
                self.scope.bind(node.id, Unknown(), certain=False)

    def _calls(self, value: ast.expr) -> None:
        for node in ast.walk(value):
            match node:
                case ast.Call(func=ast.Name(id="setattr" | "delattr"), args=[owner, *_]):
                    self.scope.doubt(ast.unparse(owner).partition(".")[0])


def _class_of(node: ast.ClassDef) -> Class:
    members = Scope()
    _Reader(members).block(node.body, certain=True)
    bases = tuple(ast.unparse(base) if isinstance(base, ast.Name | ast.Attribute) else "" for base in node.bases)
    keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
    functions = [inner for inner in node.body if isinstance(inner, ast.FunctionDef)]
    return Class(
        name=node.name,
        bases=bases,
        members=members,
        abstract=any("abstract" in ast.unparse(mark) for inner in functions for mark in inner.decorator_list),
        certain={_last(mark) for mark in node.decorator_list} <= _KEEPS_THE_FUNCTION
        and (not keywords or (set(keywords) == {"metaclass"} and keywords["metaclass"].endswith("ABCMeta"))),
    )


def _definition_of(value: ast.expr, name: str, *, outside: bool = False) -> Definition:
    match value:
        case ast.Lambda():
            return Function("<lambda>")
        case ast.Name(id=other) if not outside and other != name:
            return ImportReference("", -1, other)
        case ast.Constant() | ast.List() | ast.Tuple() | ast.Dict() | ast.Set() | ast.BinOp() | ast.JoinedStr():
            return PlainValue()
        case ast.ListComp() | ast.DictComp() | ast.SetComp() | ast.Compare() | ast.BoolOp() | ast.UnaryOp():
            return PlainValue()
    return Unknown()


def _literal_names(value: ast.expr) -> tuple[str, ...] | None:
    try:
        names = ast.literal_eval(value)
    except ValueError:
        return None
    return tuple(map(str, names)) if isinstance(names, list | tuple) else None
