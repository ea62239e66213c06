"""Python files of a repository, parsed and never run."""

from __future__ import annotations

import ast
import contextlib
import threading
import warnings

PARSER = threading.Lock()
"""Before CPython 3.11.8, syntax trees that two threads make at once may end in a SystemError.

Source: https://github.com/python/cpython/issues/106905.
"""
TRIES = 10
"""Attempts at a tree: libraries make trees, too, `packaging` one for each marker, and do not take the lock."""


def parse_python(source: str | bytes) -> ast.Module:
    """The syntax tree of *source*. Raises SyntaxError, ValueError or RecursionError when it is no Python of today."""
    with PARSER, warnings.catch_warnings():
        # Old files are full of invalid escapes, which the parser warns about.
        warnings.simplefilter("ignore")
        for _ in range(TRIES - 1):
            with contextlib.suppress(SystemError):
                return _parsed(source)
        return _parsed(source)


def _parsed(source: str | bytes) -> ast.Module:
    try:
        return ast.parse(source)
    except MemoryError as error:
        # how CPython's parser says that a source is nested without end, with all the memory in the world left
        raise RecursionError(f"nested too deep for Python's parser: {error}") from error
