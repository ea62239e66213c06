"""The form of a line of code: the line with its variable names removed."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Iterable, Iterator

from formulacode_dagster.sources.markdown import blocks, inline_code

_TOKEN = re.compile(
    r"[^\W\d]\w*|\d[\w.]*|\"[^\"\n]*\"|'[^'\n]*'|<<|>>|//|\*\*|->|&&|\|\||\+\+|--|[-+*/%&|^=<>!:@]=?|[()\[\]{}.,;~?]"
)
_SIGNS = re.compile(r"^[\s>+*-]*(?:\d+[.)]\s+)?")
_KEPT = frozenset({*keyword.kwlist, *dir(builtins), "self", "cls", "np", "const", "double", "size_t", "void", "static"})
_SHORTEST = 10
"""Tokens of a line whose form says something: `for i in range(n):` has eight."""

Form = tuple[str, ...]


def tokens_of(code: str) -> list[str]:
    """The tokens of *code*, alike for Python, Cython, C and their kin; blanks and comments' signs are none."""
    return _TOKEN.findall(code)


def form_of(line: str) -> Form:
    """Return *line* with its variables numbered by first appearance; names of calls, attributes and keywords stay.

    Empty for a line that is too plain to be recognized by its form.
    """
    tokens = tokens_of(line)
    if len(tokens) < _SHORTEST:
        return ()
    numbers: dict[str, str] = {}
    form: list[str] = []
    kept = depth = 0
    for before, part, after in zip(["", *tokens], tokens, [*tokens[1:], ""], strict=False):
        depth += (part in "([{") - (part in ")]}")
        if not (part[0].isalpha() or part[0] == "_") or part in _KEPT:
            form.append(part)
        elif before == "." or after == "(" or (depth > 0 and after == "=" and before in "(,"):
            form.append(part)
            kept += 1
        else:
            form.append(numbers.setdefault(part, f"${len(numbers)}"))
    particular = kept > 0 or len(tokens) >= _SHORTEST + 4
    return tuple(form) if particular and numbers else ()


def forms_of(lines: Iterable[str]) -> frozenset[Form]:
    """The forms of those of *lines* that have one."""
    return frozenset(form for line in lines if (form := form_of(line)))


def code_lines(text: str) -> Iterator[str]:
    """Return what may be a line of code in the Markdown *text*: every line, and every code span."""
    for block in blocks(text):
        for line in block.text.split("\n"):
            yield _SIGNS.sub("", line).strip()
        if not block.fenced:
            yield from (code.strip() for code in inline_code(block.text))
