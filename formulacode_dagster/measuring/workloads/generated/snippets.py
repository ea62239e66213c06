"""Snippets of the authors as benchmarks: each has a setup, and a statement that is timed.

This file was generated next to the repository's benchmarks and is not part of it.
"""

from __future__ import annotations

import ast
import random
import sys


class _Snippet:
    """`before` is executed with every random generator seeded; then `timed`, over and over."""

    before = ""
    timed = ""

    def setup(self) -> None:
        self._names: dict[str, object] = {"__name__": "__snippet__"}
        _seed()
        exec(compile(self.before, "<before>", "exec", dont_inherit=True), self._names)  # noqa: S102 - that is its purpose
        # a generator that the statements before imported
        _seed()
        *statements, last = ast.parse(self.timed).body
        self._value = None
        if isinstance(last, ast.Expr):
            self._value = compile(ast.Expression(last.value), "<timed>", "eval", dont_inherit=True)
        else:
            statements.append(last)
        module = ast.parse("")
        module.body = list(statements)
        self._statements = compile(module, "<timed>", "exec", dont_inherit=True)

    def time_snippet(self) -> object:
        exec(self._statements, self._names)  # noqa: S102 - that is its purpose
        return None if self._value is None else eval(self._value, self._names)  # noqa: S307 - as above


def _seed() -> None:
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
