"""No pattern of the product takes more than linear time: strangers choose texts, logs, names of files and answers."""

from __future__ import annotations

import importlib
import pkgutil
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import assets
import formulacode_dagster
import resources

pytestmark = pytest.mark.slow

SIZE = 8_000
MOST_SECONDS = 0.03
"""CPU time for one text from which its growth is looked at."""
SHORTER, MOST_GROWTH = 4, 9
"""For a quarter of a text, a linear pattern takes a quarter of the time, one that grows by the square a sixteenth."""
PIECES = (
    *("`", "a.", "A/", "a1 ", "%41", "&#4", "@a ", "@x\n", "a@b.", "a@b", "= ( x ", "x" * 40 + " ", "A b ", "A.b@c "),
    *(" ", "\n", "\t", "> ", "a", "1", "#", "-", "*", "[", "(", "<", '"', "'", "<!--", "```\n", "a,", "https://a.b/"),
    *("1.", "1-", "/", "\\", "def x", "\r\n", "a\n\n", "{", "$", "_", "<think>", "</think>", "@x\ndef f\n", "abcd "),
)
PRODUCT = (formulacode_dagster, resources, assets)
SCANS = re.compile(r"\b(\w+)\.(?:search|findall|finditer|subn?|split)\(")


@dataclass(frozen=True)
class Held:
    """A pattern in a module, and whether something scans texts with it, or matches from their start alone."""

    name: str
    pattern: re.Pattern[Any]
    scans: bool = True
    size: int = SIZE

    def seconds(self, piece: str, shorter: int = 1) -> float:
        # it ends with what hardly any pattern goes on with
        size = self.size // shorter
        text = (piece * size)[:size] + "\x00!"
        given: Any = text if isinstance(self.pattern.pattern, str) else text.encode()
        began = time.process_time()
        if self.scans:
            # each match counts, and so does each failure after one
            _ = sum(1 for _ in self.pattern.finditer(given))
        else:
            self.pattern.match(given)
            self.pattern.fullmatch(given)
        return time.process_time() - began

    def slow(self) -> Iterator[str]:
        """On which pieces it is, with the time."""
        for piece in PIECES:
            if self.seconds(piece) <= MOST_SECONDS:
                continue
            # a busy machine: the best of three
            long, short = (min(self.seconds(piece, shorter) for _ in range(3)) for shorter in (1, SHORTER))
            if long > MOST_SECONDS and long > MOST_GROWTH * short:
                yield f"{self.name} on {piece!r}: {long:.2f} s, {long / short:.0f} times as long as of a quarter"


def patterns() -> list[Held]:
    """Every pattern of the product that a module holds, by itself or in a table, each once."""
    found: dict[re.Pattern[Any], Held] = {}
    for package in PRODUCT:
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            loaded = importlib.import_module(module.name)
            scanned = set(SCANS.findall(Path(loaded.__file__ or "").read_text(encoding="utf-8")))
            for name, value in list(vars(loaded).items()):
                for pattern in within(value):
                    # where a public one is used, its home does not say; a table's is called by another name
                    scans = pattern is not value or not name.startswith("_") or name in scanned
                    if pattern not in found or scans > found[pattern].scans:
                        found[pattern] = Held(f"{module.name}.{name}", pattern, scans)
    return list(found.values())


def within(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, dict):
        for part in (*value.keys(), *value.values()):
            yield from within(part)
    elif type(value) in (list, tuple, set, frozenset):
        for part in value:  # type: ignore[attr-defined]
            yield from within(part)


@pytest.mark.timeout(900)
def test_every_pattern_is_linear() -> None:
    found = patterns()
    assert len(found) > 250
    assert [line for held in found for line in held.slow()] == []


def test_a_pattern_that_grows_by_the_square_is_found() -> None:
    # as anonymization had them: decorators without code below, and addresses
    decorated = re.compile(r"^[ \t>]*@\S+[^\n]*\n(?:[ \t>]*@[^\n]*\n)*[ \t>]*(?:def|class)\b", re.MULTILINE)
    addresses = re.compile(r"[\w.+-]+@[\w-]+\.[\w.]+")
    assert list(Held("decorated", decorated).slow())
    assert list(Held("addresses", addresses).slow())


def test_patterns_in_tables_are_found() -> None:
    nested = {re.compile("a"): [(re.compile("b"),)]}
    assert [pattern.pattern for pattern in within(nested)] == ["a", "b"]
