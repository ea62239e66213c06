"""Lines of a Python file that a patch changes in meaning, found by comparing the syntax trees of both sides."""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from formulacode_dagster.building.declarations.python_source import parse_python

COMPILING_DECORATORS = frozenset({"jit", "njit", "vectorize", "guvectorize", "cfunc", "stencil", "jitclass"})

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef
Node = ast.stmt | ast.ExceptHandler | ast.match_case


@dataclass(frozen=True)
class ChangedLines:
    """Code of one side of a file that must execute for its change to matter."""

    lines: frozenset[int]
    compiled: tuple[str, ...]
    """Functions whose changed lines run unseen, because a decorator compiles them."""
    unread: bool
    """True if something outside functions changed that no function of the file reads."""
    functions: Mapping[str, frozenset[int]] = field(default_factory=dict)
    """The lines that are inside functions, by the function's qualified name."""
    is_inside: bool = True
    """True if nothing but imports changed outside functions, and no class of the other side has other bases."""


@dataclass(frozen=True)
class CodeUnit:
    """A statement, handler or case without the statements inside of it."""

    node: Node
    lines: range
    """All of a simple statement, else those of its header."""
    name: str
    """The qualified name of a function or class, else that of the innermost one around it."""
    function: Function | None
    """The innermost function around it."""
    function_name: str


class Source:
    """One parsed side of a file; raises SyntaxError and ValueError if this interpreter cannot parse it."""

    def __init__(self, content: bytes) -> None:
        self.tree = parse_python(content)
        self.units = tuple(sorted(_units(self.tree, "", None, ""), key=lambda unit: unit.lines.start))
        self._text = content.decode("utf-8", "replace").split("\n")

    @cached_property
    def meanings(self) -> frozenset[tuple[str, str]]:
        """Its functions, headers of functions and classes, and statements outside functions."""
        meanings = set()
        for unit in self.units:
            if isinstance(unit.node, Definition):
                meanings.add((unit.name, _header(unit.node)))
            if isinstance(unit.node, Function):
                meanings.add((unit.name, _dump(unit.node)))
            elif unit.function is None:
                meanings.add(("", ast.dump(unit.node)))
        return frozenset(meanings)

    def unit_of(self, line: int) -> CodeUnit | None:
        """Return the code unit of *line*; a lone `else:` belongs to what follows, blank lines and comments to None."""
        own = [unit for unit in self.units if line in unit.lines]
        if own:
            return min(own, key=lambda unit: len(unit.lines))
        text = self._text[line - 1].strip() if line <= len(self._text) else ""
        if not text or text.startswith("#"):
            return None
        return next((unit for unit in self.units if unit.lines.start > line), None)

    @cached_property
    def imports(self) -> frozenset[tuple[str, str, str]]:
        """Module, imported name and bound name of each import outside of functions."""
        found = set()
        for node in (unit.node for unit in self.units if unit.function is None):
            if isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                found |= {(module, name.name, name.asname or name.name) for name in node.names}
            elif isinstance(node, ast.Import):
                found |= {(name.name, "", name.asname or name.name.partition(".")[0]) for name in node.names}
        return frozenset(found)

    def spans(self, name: str) -> list[tuple[int, int]]:
        """First and last lines, with decorators, of functions with this qualified *name*."""
        return [
            (min([node.lineno, *(part.lineno for part in node.decorator_list)]), node.end_lineno or node.lineno)
            for unit in self.units
            if isinstance(node := unit.node, Function) and unit.name == name
        ]

    def entry_lines(self, name: str) -> set[int]:
        """Lines of which one runs whenever a function with this qualified *name* is called; none if there is none."""
        return {
            line
            for unit in self.units
            if isinstance(node := unit.node, Function) and unit.name == name
            for line in _first_lines(node.body) or self.body_lines(node)
        }

    def body_lines(self, node: Definition) -> set[int]:
        """The lines that run when a function is called; of a class, when any of its functions is."""
        functions = (
            [node] if isinstance(node, Function) else [child for child in node.body if isinstance(child, Function)]
        )
        spans = [(function, range(function.body[0].lineno, (function.end_lineno or 0) + 1)) for function in functions]
        return {
            line
            for unit in self.units
            if any(unit.node is not function and unit.lines.start in span for function, span in spans)
            for line in unit.lines
        }


def changed_lines(source: Source, others: Collection[tuple[str, str]], lines: Iterable[int]) -> ChangedLines:
    """Return the lines of *source* that must execute for a change of its *lines* to matter, if the other side has the
    meanings *others*.

    These are the changed statements; all of a function or class whose header changed; and readers of what changed
    outside functions. Comments, docstrings, annotations, and functions with unchanged meaning do not count.
    """
    wanted: set[int] = set()
    unread, is_inside = False, True
    for unit in {unit for line in lines if (unit := source.unit_of(line)) is not None}:
        node, function = unit.node, unit.function
        if _is_constant(node):
            continue
        if function is not None and (unit.function_name, _dump(function)) in others:
            continue
        if isinstance(node, Definition):
            if (unit.name, _header(node)) not in others:
                wanted |= source.body_lines(node)
                is_inside &= isinstance(node, Function) or all(name != unit.name for name, _ in others)
            continue
        if function is None and (_is_inert(node) or ("", ast.dump(node)) in others):
            continue
        is_inside &= function is not None or isinstance(node, ast.Import | ast.ImportFrom)
        wanted |= set(unit.lines)
        if function is None and _does_something(node):
            readers = _reader_lines(source, node)
            wanted |= readers
            unread = unread or not readers
    hidden = {
        unit.node.name: wanted & set(range(unit.lines.start, (unit.node.end_lineno or 0) + 1))
        for unit in source.units
        if isinstance(unit.node, Function) and _is_compiling(unit.node)
    }
    compiled = tuple(name for name, inside in hidden.items() if inside)
    seen = wanted.difference(*hidden.values())
    functions: dict[str, set[int]] = {}
    for unit in source.units:
        if unit.function is not None and (inside := seen.intersection(unit.lines)):
            functions.setdefault(unit.function_name, set()).update(inside)
    by_function = {name: frozenset(at) for name, at in functions.items()}
    return ChangedLines(frozenset(seen), compiled, unread, by_function, is_inside)


def _units(node: ast.AST, prefix: str, function: Function | None, function_name: str) -> Iterator[CodeUnit]:
    """Everything below *node*."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Node):
            continue
        name = f"{prefix}{child.name}" if isinstance(child, Definition) else prefix.rstrip(".")
        yield CodeUnit(child, _own_lines(child), name, function, function_name)
        if isinstance(child, Function):
            yield from _units(child, f"{name}.", child, name)
        else:
            inside = f"{name}." if isinstance(child, Definition) else prefix
            yield from _units(child, inside, function, function_name)


def _own_nodes(node: Node) -> Iterator[ast.AST]:
    """Everything of *node* but the statements inside of it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Node):
            yield from ast.walk(child)


def _own_lines(node: Node) -> range:
    own = [part for part in _own_nodes(node) if isinstance(part, ast.expr | ast.pattern | ast.arg)]
    starts = [part.lineno for part in own]
    ends = [part.end_lineno or part.lineno for part in own]
    if not isinstance(node, ast.match_case):
        starts.append(node.lineno)
        ends.append((node.lineno if _has_body(node) else node.end_lineno) or node.lineno)
    return range(min(starts), max(ends) + 1)


def _first_lines(body: Sequence[ast.stmt]) -> set[int]:
    """The lines up to the end of the first statement of a function's *body* that always runs, without what it holds."""
    lines: set[int] = set()
    for node in body:
        # no line of their own is sure to run
        if isinstance(node, ast.Try | ast.TryStar) or (
            isinstance(node, ast.While) and isinstance(node.test, ast.Constant)
        ):
            return lines | set(_own_lines(node)) | _first_lines(node.body)
        lines |= set(_own_lines(node))
        if not isinstance(node, ast.Global | ast.Nonlocal | ast.AnnAssign | ast.Pass) and not _is_constant(node):
            return lines
    return set()


def _has_body(node: Node) -> bool:
    return any(isinstance(child, Node) for child in ast.iter_child_nodes(node))


def _reader_lines(source: Source, statement: Node) -> set[int]:
    """Return lines inside functions that read what *statement*, outside of them, sets; all of its class if there are
    none.
    """
    mentioned = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
    names = {node.id for node in mentioned if isinstance(node.ctx, ast.Store)} or {node.id for node in mentioned}
    owners = (unit.node for unit in source.units if isinstance(unit.node, ast.ClassDef))
    owner = next((node for node in owners if statement in node.body), None)
    lines: set[int] = set()
    for unit in source.units:
        read = any(
            (isinstance(node, ast.Name) and node.id in names)
            or (owner is not None and isinstance(node, ast.Attribute) and node.attr in names)
            for node in _own_nodes(unit.node)
        )
        if read and isinstance(unit.node, Function):
            lines |= source.body_lines(unit.node)
        elif read and unit.function is not None:
            lines |= set(unit.lines)
    return lines or (source.body_lines(owner) if owner is not None else set())


def _does_something(node: Node) -> bool:
    """Return True if a statement outside functions can change what functions do: not a mere import or header."""
    return not isinstance(node, ast.Import | ast.ImportFrom) and not _has_body(node)


def _is_constant(node: Node) -> bool:
    """Return True for a docstring, or another constant without effect."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_inert(node: Node) -> bool:
    """Return True if it changes no execution: it assigns `__version__`, `__all__` …, but not `__slots__`."""
    return isinstance(node, ast.Assign) and all(
        isinstance(target, ast.Name) and target.id.startswith("__") and target.id != "__slots__"
        for target in node.targets
    )


def _dump(function: Function) -> str:
    """The function's meaning as text: no positions, comments, docstring or annotations."""
    body = function.body[1:] if _is_constant(function.body[0]) else function.body
    return f"{_header(function)} " + " ".join(ast.dump(part) for part in body)


def _header(node: Definition) -> str:
    """Return the meaning of the header before the body."""
    parts: list[ast.AST] = [*node.decorator_list]
    words = [type(node).__name__, node.name]
    if isinstance(node, ast.ClassDef):
        parts += [*node.bases, *node.keywords]
    else:
        given = node.args
        for arguments in (given.posonlyargs, given.args, [given.vararg], given.kwonlyargs, [given.kwarg]):
            words += ["/", *(argument.arg for argument in arguments if argument is not None)]
        parts += [*given.defaults, *(default or ast.Constant(...) for default in given.kw_defaults)]
    return " ".join([*words, *(ast.dump(part) for part in parts)])


def _is_compiling(function: Function) -> bool:
    """Return True if a decorator compiles the function, so that tracing cannot see it."""
    names = {
        node.attr if isinstance(node, ast.Attribute) else node.id
        for decorator in function.decorator_list
        for node in ast.walk(decorator)
        if isinstance(node, ast.Attribute | ast.Name)
    }
    return bool(names & COMPILING_DECORATORS)
