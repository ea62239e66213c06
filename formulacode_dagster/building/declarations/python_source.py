"""Python files and requirements of a repository, parsed and never run."""

from __future__ import annotations

import ast
import contextlib
import threading
import warnings
from collections.abc import Callable
from typing import TypeVar

from packaging.requirements import Requirement

PARSER = threading.Lock()
"""Before CPython 3.11.8, syntax trees that two threads make at once may end in a SystemError.

Source: https://github.com/python/cpython/issues/106905.
"""
TRIES = 10
"""Attempts at a tree: libraries make trees, too, and do not take the lock."""
Parsed = TypeVar("Parsed")


def parse_python(source: str | bytes) -> ast.Module:
    """The syntax tree of *source*. Raises SyntaxError, ValueError or RecursionError when it is no Python of today."""
    with PARSER, warnings.catch_warnings():
        # Old files are full of invalid escapes, which the parser warns about.
        warnings.simplefilter("ignore")
        return _tried(lambda: _parsed(source))


def parse_requirement(text: str) -> Requirement:
    """The requirement *text*, of whose marker `packaging` makes syntax trees. Raises InvalidRequirement."""
    with PARSER:
        return _tried(lambda: Requirement(text))


def _tried(parse: Callable[[], Parsed]) -> Parsed:
    for _ in range(TRIES - 1):
        with contextlib.suppress(SystemError):
            return parse()
    return parse()


def _parsed(source: str | bytes) -> ast.Module:
    try:
        return ast.parse(source)
    except MemoryError as error:
        # how CPython's parser says that a source is nested without end, with all the memory in the world left
        raise RecursionError(f"nested too deep for Python's parser: {error}") from error
