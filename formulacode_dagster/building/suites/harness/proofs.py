"""Values that timed calls compute, for a comparison with the base's: a time for the wrong result is no time."""

from __future__ import annotations

import ast
import contextlib
import inspect
import itertools
import operator
import time
import types
from typing import TYPE_CHECKING, Any, Callable  # noqa: UP035 - CPython 3.7 evaluates the aliases below

from .results import Reading, public_attributes, returned

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_NUMBERS = 200
"""Floats reported of one value; of more, as many at random places."""
VALUE_PREFIX = "statement_"

Call = Callable[[], object]
_Steps = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_PASSES_CONTROL = (ast.Yield, ast.YieldFrom, ast.Await)
_FLAGS = 0x1FF0000
"""Flags of `from __future__` in a code object: https://docs.python.org/3/library/__future__.html"""


class Draws:
    """Random numbers from a seed, without the import of `random`, which loads several modules."""

    def __init__(self, seed: int) -> None:
        self._state = seed

    def below(self, limit: int) -> int:
        """A number from 0 to below *limit*."""
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self._state >> 33) * limit >> 31


class KeptCall:
    """One of a timer's calls, drawn with equal chances, and what it computed."""

    def __init__(self, function: Callable[..., object], arguments: tuple[object, ...], seed: int) -> None:
        """*function* is the benchmark's, called with *arguments*."""
        self._witness = witness(function)
        self._draws = Draws(seed)
        self._calls = 0
        self._kept: object = None
        self.accounted = 0.0
        """Seconds of all batches with their setups, by the clock."""
        self.setups = 0.0
        """CPU seconds of their setups."""
        kept = self._witness or function
        self._call: Call = (lambda: kept(*arguments)) if arguments else kept

    def watch(self, timer: Any, *, consume: bool) -> None:
        """Keep one of the calls that *timer* makes from now on; with *consume*, each call's values are read in time."""
        setup, statement = timer.inner.__defaults__
        call = self._call
        if consume:

            def statement_read() -> object:
                value = self._call()
                _read(self._parts_of(value))
                return value

            statement = call = statement_read

        def inner(
            batch: Iterator[None],
            clock: Callable[[], float],
            setup: Call = setup,
            statement: Call = statement,
            call: Call = call,
        ) -> float:
            number = operator.length_hint(batch)
            place = self._draws.below(number)
            before, after = itertools.repeat(None, place), itertools.repeat(None, number - place - 1)
            started, spent = time.perf_counter(), time.process_time()
            setup()
            self.setups += time.process_time() - spent
            began = clock()
            for _ in before:
                statement()
            value = call()
            for _ in after:
                statement()
            ended = clock()
            self.accounted += time.perf_counter() - started
            self._keep(value, number)
            return ended - began

        timer.inner = inner

    def _keep(self, value: object, number: int) -> None:
        self._calls += number
        if self._draws.below(self._calls) < number:
            self._kept = value

    def values(self, seed: int) -> list[dict[str, object]]:
        """Describe each value of the kept call: its result, and its variables; *seed* draws those of many floats."""
        return described(self._parts_of(self._kept), MOST_NUMBERS, Draws(seed).below)

    def _parts_of(self, value: object) -> list[tuple[str, object]]:
        return [("", value)] if self._witness is None else parts_of(value, self._witness)


def described(
    parts: list[tuple[str, object]], most: int, draw: Callable[[int], int] | None = None
) -> list[dict[str, object]]:
    """Describe each of *parts* as `returned` does, and each attribute of an object that cannot be described whole."""
    told = []
    for name, value in parts:
        whole = returned(value, most, draw, objects=True)
        told.append({"part": name, **whole})
        if "form" not in whole:
            with contextlib.suppress(Exception):
                each = [(f"{name}.{attribute}", held) for attribute, held in public_attributes(value)]
                told += [{"part": part, **returned(held, most, draw, objects=True)} for part, held in each]
    return told


def parts_of(value: Any, function: Any) -> list[tuple[str, object]]:
    """Return what a call of the witness *function* computed: its result and its variables, but not its arguments."""
    result, variables = value
    code = function.__code__
    arguments = frozenset(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    return [("", result), *sorted(item for item in variables.items() if item[0] not in arguments)]


def witness(function: Any) -> Any:
    """*function*, but returning its result together with its local variables; None if that cannot be made of it.

    The value of a statement that is an expression is kept as a variable: most benchmarks call and return nothing.
    """
    method = getattr(function, "__func__", function)
    code = getattr(method, "__code__", None)
    if code is None or code.co_freevars or code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE):
        return None
    try:
        # all of the file: what a name compiles to depends on the imports and the class around it
        source = "".join(inspect.findsource(method)[0])
        plain, kept = ast.parse(source), ast.parse(source)
        _KeepValues().add_to(next(node for node in ast.walk(kept) if _is_of(node, code)))
        if _compiled(plain, code).co_code != code.co_code:
            # another function than the source says
            return None
        made = types.FunctionType(_compiled(kept, code), method.__globals__, method.__name__, method.__defaults__)
    except Exception:  # noqa: BLE001 - whatever prevents it, the benchmark is timed without a witness
        return None
    made.__kwdefaults__ = method.__kwdefaults__
    return made if method is function else types.MethodType(made, function.__self__)


def _is_of(node: ast.AST, code: types.CodeType) -> bool:
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or node.name != code.co_name:
        return False
    # a function's code begins with its decorators, but for CPython 3.7
    return code.co_firstlineno in (node.lineno, *(each.lineno for each in node.decorator_list))


def _compiled(module: ast.Module, code: types.CodeType) -> types.CodeType:
    """The code of the same function in *module*."""
    ast.fix_missing_locations(module)
    pending: list[types.CodeType] = [compile(module, code.co_filename, "exec", code.co_flags & _FLAGS, True)]
    while pending:
        each = pending.pop()
        if (each.co_name, each.co_firstlineno) == (code.co_name, code.co_firstlineno):
            return each
        pending += [constant for constant in each.co_consts if isinstance(constant, types.CodeType)]
    raise LookupError(code.co_name)


class _KeepValues(ast.NodeTransformer):
    """Changes the body of one function; those within it stay."""

    def add_to(self, function: Any) -> None:
        """Change *function*."""
        function.body = [self.visit(statement) for statement in function.body]
        function.body.append(ast.Return(_with_variables(None)))

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Change what is below *node*, unless it is a scope of its own."""
        if isinstance(node, _PASSES_CONTROL):
            raise TypeError("no plain function")
        return node if isinstance(node, _Steps) else super().generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST:
        """Keep the value of a statement."""
        self.generic_visit(node.value)
        if not isinstance(node.value, (ast.Call, ast.Subscript, ast.BinOp, ast.Attribute, ast.Compare)):
            return node
        name = ast.Name(f"{VALUE_PREFIX}{node.lineno}_{node.col_offset}", ast.Store())
        return ast.copy_location(ast.Assign([name], node.value), node)

    def visit_Return(self, node: ast.Return) -> ast.AST:
        """Return the variables, too."""
        return ast.copy_location(ast.Return(_with_variables(node.value)), node)


def _with_variables(value: ast.expr | None) -> ast.Tuple:
    told = value or ast.parse("None", mode="eval").body
    return ast.Tuple([told, ast.parse("locals()", mode="eval").body], ast.Load())


def _read(parts: list[tuple[str, object]]) -> None:
    """Read each value as a comparison does: one that is computed when it is looked at is computed in time."""
    for _, value in parts:
        # what cannot be compared is not read
        with contextlib.suppress(Exception):
            Reading(objects=True).form(value)
