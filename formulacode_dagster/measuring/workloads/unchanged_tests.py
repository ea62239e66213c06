"""Finds tests that do the same before and after a change of their file.

Tests inside a package are installed with it, so each arm has its own version of a file that the pull request changes.
Most often it only adds tests there, and the others are the same on every arm.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from formulacode_dagster.building.declarations.python_source import parse_python

Function = ast.FunctionDef | ast.AsyncFunctionDef
_TEST_FUNCTION, _TEST_CLASS = "test", "Test"


def unchanged_tests(before: bytes, after: bytes) -> frozenset[str]:
    """Return the functions, and methods as `Class::function`, that are equal in both versions of a file of tests, as is
    everything that they may use in it.

    Apart from tests, a change may only add to a file: imports, and functions without decorators, under names that it
    did not have. Otherwise no test counts as unchanged, nor any of a file that cannot be parsed.
    """
    try:
        old, new = parse_python(before.decode()).body, parse_python(after.decode()).body
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    if not _only_adds(old, new):
        return frozenset()
    altered = _altered(old, new)
    new = [each for each in new if altered.isdisjoint(_mentioned(each))]
    return frozenset(chain(_equal("", old, new), _equal_methods(old, new)))


def _only_adds(old: Iterable[ast.stmt], new: Iterable[ast.stmt]) -> bool:
    """Return True if *new* has all that is no test of *old*, in its order, and between it only what changes no test."""
    taken = {name for statement in old for name in _bound(statement)}
    left = [ast.dump(statement) for statement in old if not _is_test(statement)]
    for statement in new:
        if _is_test(statement):
            continue
        if left and ast.dump(statement) == left[0]:
            del left[0]
        elif not _is_harmless(statement) or not taken.isdisjoint(_bound(statement)):
            return False
    return not left


def _is_test(statement: ast.stmt) -> bool:
    if isinstance(statement, Function):
        return statement.name.startswith(_TEST_FUNCTION)
    return isinstance(statement, ast.ClassDef) and statement.name.startswith(_TEST_CLASS)


def _is_harmless(statement: ast.stmt) -> bool:
    """Return True for an import by names, and for a function that pytest does not call by itself."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return all(alias.name != "*" for alias in statement.names)
    if not isinstance(statement, Function) or statement.decorator_list:
        return False
    return not statement.name.lower().startswith(("pytest_", "setup", "teardown"))


def _bound(statement: ast.stmt) -> Iterator[str]:
    """Yield the names that *statement* binds in its module, as far as it is no block."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        yield from ((alias.asname or alias.name).partition(".")[0] for alias in statement.names)
    elif isinstance(statement, Function | ast.ClassDef):
        yield statement.name
    else:
        yield from (node.id for node in ast.walk(statement) if isinstance(node, ast.Name))


def _altered(old: Sequence[ast.stmt], new: Sequence[ast.stmt]) -> set[str]:
    """Return the names of tests, and of classes of tests, that are not the same, or use one that is not."""
    before, after = ({name: ast.dump(each) for each in body for name in _named(each)} for body in (old, new))
    altered = {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}
    while more := {name for each in new if not altered.isdisjoint(_mentioned(each)) for name in _named(each)} - altered:
        altered |= more
    return altered


def _named(statement: ast.stmt) -> list[str]:
    return [statement.name] if isinstance(statement, Function | ast.ClassDef) else []


def _mentioned(statement: ast.stmt) -> set[str]:
    return {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}


def _equal(prefix: str, old: Iterable[ast.stmt], new: Iterable[ast.stmt]) -> Iterator[str]:
    before = _by_name(old)
    for name, function in _by_name(new).items():
        if name.startswith(_TEST_FUNCTION) and before.get(name) == function:
            yield f"{prefix}{name}"


def _by_name(body: Iterable[ast.stmt]) -> Mapping[str, str]:
    """Return the functions of *body* as text, by name: the last of each, which is the one that there is."""
    return {each.name: ast.dump(each) for each in body if isinstance(each, Function)}


def _equal_methods(old: Iterable[ast.stmt], new: Iterable[ast.stmt]) -> Iterator[str]:
    """Yield the equal tests of classes that are equal apart from their tests."""
    before = {each.name: each for each in old if isinstance(each, ast.ClassDef)}
    for each in new:
        if isinstance(each, ast.ClassDef) and (other := before.get(each.name)) and _frame(each) == _frame(other):
            yield from _equal(f"{each.name}::", other.body, each.body)


def _frame(owner: ast.ClassDef) -> list[str]:
    """Return everything of a class but its tests, as text."""
    heads = [*owner.decorator_list, *owner.bases, *owner.keywords]
    return [ast.dump(part) for part in (*heads, *(each for each in owner.body if not _is_test(each)))]
