"""Finds tests that do the same before and after a change of their file.

Tests inside a package are installed with it, so each arm has its own version of a file that the pull request changes.
Most often it only adds tests there, and the others are the same on every arm.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from formulacode_dagster.building.declarations.python_source import parse_python
from formulacode_dagster.measuring.correctness.module_shape import Function, ModuleShape

from .overlay import words_of

Definition = Function | ast.ClassDef
_CALLED_BY_PYTEST = ("pytest", "setup", "teardown", "collect_ignore")
"""Starts of names in a module that pytest uses by itself."""


def unchanged_tests(before: bytes, after: bytes) -> frozenset[str]:
    """Return the functions, and methods as `Class::function`, that are equal in both versions of a file of tests, as is
    everything that they may use in it.

    Apart from tests, a change may only bind new names, by imports, assignments and functions without decorators that
    pytest does not use by itself. Otherwise no test counts as unchanged, nor any of a file that cannot be parsed.
    """
    try:
        old, new = parse_python(before.decode()).body, parse_python(after.decode()).body
        if not _only_adds(_shared(old), _shared(new)):
            return frozenset()
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    return frozenset(_equal("", old, new))


def _shared(body: Sequence[ast.stmt]) -> list[ast.stmt]:
    """Return what is no test of *body*."""
    return [each for each in body if not _is_test(each)]


def _is_test(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.ClassDef):
        return statement.name.startswith("Test")
    if not isinstance(statement, Function) or not statement.name.startswith("test"):
        return False
    # a fixture may have such a name
    return not any("fixture" in words_of(decorator) for decorator in statement.decorator_list)


def _only_adds(old: Sequence[ast.stmt], new: Sequence[ast.stmt]) -> bool:
    """Return True if *new* has all of *old*, and besides only binds new names that mean nothing to pytest."""
    before, after = (ModuleShape.of(ast.unparse(ast.Module([*body], [])).encode()) for body in (old, new))
    kept = {ast.dump(each) for each in new}
    names = {name.lower() for statement in after.statements for _, name in statement.names}
    names -= {name.lower() for statement in before.statements for _, name in statement.names}
    return (
        before.is_part_of(after)
        # a shape has no bodies
        and all(ast.dump(each) in kept for each in old if isinstance(each, Definition))
        and not any(name.startswith(_CALLED_BY_PYTEST) for name in names)
    )


def _equal(prefix: str, old: Sequence[ast.stmt], new: Sequence[ast.stmt]) -> Iterator[str]:
    """Yield the tests of *new*, a module's body or a class's, that *old* has too, if they use none that it has not."""
    altered = _altered(old, new)
    classes = {each.name: each for each in old if isinstance(each, ast.ClassDef)}
    for each in filter(_is_test, new):
        if isinstance(each, Function) and each.name not in altered:
            yield f"{prefix}{each.name}"
        elif isinstance(each, ast.ClassDef) and altered.isdisjoint(words_of(each) - {each.name}):
            other = classes.get(each.name)
            if other is not None and _frame(each) == _frame(other):
                yield from _equal(f"{prefix}{each.name}::", other.body, each.body)


def _altered(old: Sequence[ast.stmt], new: Sequence[ast.stmt]) -> set[str]:
    """Return the names of functions and classes that are not the same, or use one that is not."""
    before, after = ({each.name: each for each in body if isinstance(each, Definition)} for body in (old, new))
    kept = {name for name in before.keys() & after.keys() if ast.dump(before[name]) == ast.dump(after[name])}
    altered = (before.keys() | after.keys()) - kept
    words = {name: words_of(after[name]) for name in kept}
    while more := {name for name in kept - altered if not altered.isdisjoint(words[name])}:
        altered |= more
    return altered


def _frame(owner: ast.ClassDef) -> list[str]:
    """Return everything of a class but its tests, as text."""
    return [ast.dump(part) for part in (*owner.decorator_list, *owner.bases, *owner.keywords, *_shared(owner.body))]
