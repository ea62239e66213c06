"""No pattern that reads issues, titles and patches takes more than linear time: strangers choose the texts."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from collections.abc import Iterator

import pytest

from formulacode_dagster import selection
from formulacode_dagster.sources import markdown

pytestmark = pytest.mark.slow

SIZE = 8_000
MOST_SECONDS = 0.15
"""Of CPU time for one text; a pattern that grows by the square takes several times as long."""
PIECES = (
    *("`", "a.", "A/", "a1 ", "%41", "&#4", "@a ", "@x\n", "a@b.", "a@b", "= ( x ", "x" * 40 + " ", "A b ", "A.b@c "),
    *(" ", "\n", "\t", "> ", "a", "1", "#", "-", "*", "[", "(", "<", '"', "'", "<!--", "```\n", "a,", "https://a.b/"),
    *("1.", "1-", "/", "\\", "def x", "\r\n", "a\n\n", "{", "$", "_", "<think>", "</think>", "@x\ndef f\n", "abcd "),
)


def patterns() -> Iterator[tuple[str, re.Pattern[str] | re.Pattern[bytes]]]:
    named = [module.name for module in pkgutil.walk_packages(selection.__path__, f"{selection.__name__}.")]
    for module in (markdown, *map(importlib.import_module, named)):
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern):
                yield f"{module.__name__}.{name}", value


def seconds(pattern: re.Pattern[str] | re.Pattern[bytes], piece: str) -> float:
    # it ends with what hardly any pattern goes on with
    text = (piece * SIZE)[:SIZE] + "\x00!"
    began = time.process_time()
    # each match counts, and so does each failure after one
    _ = sum(1 for _ in pattern.finditer(text if isinstance(pattern.pattern, str) else text.encode()))  # type: ignore[arg-type]
    return time.process_time() - began


def test_every_pattern_is_linear() -> None:
    found = dict(patterns())
    assert len(found) > 50
    slow = {
        f"{name} on {piece!r}": f"{worst:.2f} s"
        for name, pattern in found.items()
        for piece in PIECES
        # a busy machine: the better of two
        if (worst := seconds(pattern, piece)) > MOST_SECONDS and (worst := seconds(pattern, piece)) > MOST_SECONDS
    }
    assert slow == {}


def test_a_pattern_that_grows_by_the_square_is_found() -> None:
    # as anonymization had them: decorators without code below, and addresses
    decorated = re.compile(r"^[ \t>]*@\S+[^\n]*\n(?:[ \t>]*@[^\n]*\n)*[ \t>]*(?:def|class)\b", re.MULTILINE)
    assert max(seconds(decorated, piece) for piece in PIECES) > MOST_SECONDS
    assert max(seconds(re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+"), piece) for piece in PIECES) > MOST_SECONDS
