"""A patch made to fit a prompt, before the call and visibly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from formulacode_dagster.models.paths import PathKind, kind_of
from formulacode_dagster.sources.git.diff import FileDiff, split_patch

_LONGEST_LINE = 1_000
_LEAST = 400
_HEAD_SHARE = 2 / 3


@dataclass(frozen=True)
class Excerpt:
    """The part of a text that fits, and whether it was cut."""

    text: str
    truncated: bool


def excerpt_of_patch(patch: bytes, characters: int) -> Excerpt:
    """*patch* in at most about *characters*.

    Sources come before tests and documentation if not all fits; small files stay whole; large ones keep head and tail.
    Every cut leaves a line in square brackets that says what was left out, binary content included.
    """
    files = split_patch(patch)
    texts = [_readable(file) for file in files]
    whole = "".join(texts)
    if len(whole) <= characters:
        return Excerpt(whole, truncated=whole != "".join(file.text for file in files))
    order = sorted(range(len(files)), key=lambda index: kind_of(files[index].path) is not PathKind.CORE)
    shown = order[: max(1, characters // _LEAST)]
    shares = shares_of([len(texts[index]) for index in shown], characters)
    parts = [excerpt_of_text(texts[index], share).text for index, share in zip(shown, shares, strict=True)]
    if left_out := order[len(shown) :]:
        names = ", ".join(files[index].path for index in left_out[:10])
        parts.append(f"[{len(left_out)} more files left out: {names}{' …' if len(left_out) > 10 else ''}]\n")
    return Excerpt("".join(parts), truncated=True)


def excerpt_of_text(text: str, characters: int) -> Excerpt:
    """Head and tail of *text* in at most about *characters*, cut between lines; a line says how much is missing."""
    if len(text) <= characters:
        return Excerpt(text, truncated=False)
    head_end = text.rfind("\n", 0, int(characters * _HEAD_SHARE)) + 1 or int(characters * _HEAD_SHARE)
    tail_start = text.find("\n", len(text) - int(characters * (1 - _HEAD_SHARE))) + 1 or len(text)
    dropped = text[head_end:tail_start].count("\n")
    head = text[:head_end] if text[:head_end].endswith("\n") else text[:head_end] + "\n"
    return Excerpt(f"{head}[{dropped} lines left out here]\n{text[tail_start:]}", truncated=True)


def excerpt_around(text: str, spans: Sequence[tuple[int, int]], characters: int) -> Excerpt:
    """Lines of *text* in at most about *characters*: those of *spans* (first and last line, from 1), from the first
    line of each on, then the lines nearest to them. A line says how much is missing at each place.
    """
    if len(text) <= characters:
        return Excerpt(text, truncated=False)
    lines = text.splitlines(keepends=True)

    def rank(number: int) -> tuple[int, int]:
        distance = min((max(first - number, number - last, 0) for first, last in spans), default=0)
        inside = (number - first for first, last in spans if first <= number <= last)
        return distance, min(inside, default=number)

    kept: set[int] = set()
    for number in sorted(range(1, len(lines) + 1), key=rank):
        characters -= len(lines[number - 1])
        if characters < 0:
            break
        kept.add(number)
    parts: list[str] = []
    for is_kept, group in groupby(range(1, len(lines) + 1), key=kept.__contains__):
        numbers = list(group)
        parts += [lines[number - 1] for number in numbers] if is_kept else [f"[{len(numbers)} lines left out here]\n"]
    return Excerpt("".join(parts), truncated=True)


def _readable(file: FileDiff) -> str:
    text = file.text
    if "GIT binary patch\n" in text and file.binary:
        head = text.partition("GIT binary patch\n")[0]
        text = f"{head}[binary content left out]\n"
    if len(text) > _LONGEST_LINE:
        text = re.sub(
            rf"^(.{{{_LONGEST_LINE}}})(.+)$", lambda m: f"{m[1]}\n[{len(m[2])} characters left out]", text, flags=re.M
        )
    return text


def shares_of(sizes: Sequence[int], total: int) -> list[int]:
    """Return the share of *total* for each of *sizes*: small ones get all they need, the rest equal parts of what is
    left.
    """
    shares = [0] * len(sizes)
    left = total
    by_size = sorted(range(len(sizes)), key=lambda index: sizes[index])
    for done, index in enumerate(by_size):
        shares[index] = min(sizes[index], left // (len(sizes) - done))
        left -= shares[index]
    return shares
