"""Keeping the solution out of a text: its lines, and the links that lead to it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence

from formulacode_dagster.sources.markdown import Block, blocks, map_prose, map_unfenced, tidy

from .solution import changed_lines, solution_lines, words_of
from .trails import Trails

WITHHELD = "[withheld]"

_WORD = re.compile(r"\w+")
_HUNK = re.compile(r"^[ \t>]*(?:@@ -\d+(?:,\d+)? \+\d+|diff --git |--- a/|\+\+\+ b/)", re.MULTILINE)
_QUOTED = re.compile(r"^[\s>+-]*")


class Solution:
    """A patch, prepared to be looked for in texts."""

    def __init__(self, patch: bytes) -> None:
        self._by_start: defaultdict[tuple[str, ...], list[list[str]]] = defaultdict(list)
        for line in solution_lines(patch):
            words = words_of(line)
            self._by_start[tuple(words[:3])].append(words)
        self._added = changed_lines(patch, added_only=True)

    def withhold(self, text: str) -> str:
        """Return *text* with every distinctive line of the patch withheld: code lines as a whole, in prose only the
        place.

        A block that shows a diff is withheld as a whole if it has any of them or hunks, since the surrounding lines
        reveal the rest.
        """
        return "".join(self._fenced(block) if block.fenced else self._prose(block.text) for block in blocks(text))

    def _fenced(self, block: Block) -> str:
        first, *lines = block.text.split("\n")
        closed = bool(lines) and lines[-1].strip(" \t>").startswith(("```", "~~~"))
        body, last = (lines[:-1], [lines[-1]]) if closed else (lines, [])
        code = "\n".join(body)
        hit = self._lines_hit(code)
        if _HUNK.search(code) or block.language.startswith("suggestion") or (hit and _is_diff(block)):
            return "\n".join([first, WITHHELD, *last])
        if not hit:
            return block.text
        # besides distinctive lines, plain lines of the patch count here too
        hit |= {n for n, line in enumerate(body) if _QUOTED.sub("", line).strip() in self._added}
        kept = [WITHHELD if n in hit else line for n, line in enumerate(body) if n not in hit or n - 1 not in hit]
        return "\n".join([first, *kept, *last])

    def _prose(self, text: str) -> str:
        parts: list[str] = []
        end = 0
        for start, stop in _merged(self._spans(text)):
            while start > end and not text[start - 1].isspace():
                start -= 1
            while stop < len(text) and not text[stop].isspace():
                stop += 1
            if start < end:
                end = max(end, stop)
                continue
            parts += (text[end:start], WITHHELD)
            end = stop
        return "".join((*parts, text[end:]))

    def _lines_hit(self, code: str) -> set[int]:
        return {
            number
            for start, stop in self._spans(code)
            for number in range(code.count("\n", 0, start), code.count("\n", 0, stop) + 1)
        }

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        places = [(match.start(), match.end()) for match in _WORD.finditer(text)]
        words = [text[start:stop].casefold() for start, stop in places]
        for index in range(len(words)):
            for wanted in self._by_start.get(tuple(words[index : index + 3]), ()):
                if words[index : index + len(wanted)] == wanted:
                    yield places[index][0], places[index + len(wanted) - 1][1]


def without_references(text: str, *, repository: str, number: int, shas: Sequence[str]) -> str:
    """Return *text* without references to the pull request, whose commits are *shas*, and without commit hashes.

    Phrases that close issues ("Fixes #12") go too; other references stay.
    """
    text = Trails(repository, number, shas).without(text)
    text = map_unfenced(text, _without_closing_phrases)
    return tidy(text)


_ISSUE = r"(?:[\w.-]+/[\w.-]+)?#\d+|GH-\d+|https?://\S+/issues/\d+|\[(?:link|commit) withheld\]"
_CLOSING = re.compile(
    rf"\b(?:fix(?:es|ed)?|clos(?:e|es|ed)|resolv(?:e|es|ed))\b:?[ \t]+(?:issues?[ \t]+)?(?:{_ISSUE})"
    rf"(?:[ \t]*(?:,|and|&)[ \t]*(?:{_ISSUE}))*[.,;]?",
    re.IGNORECASE,
)


def _without_closing_phrases(text: str) -> str:
    kept: list[str] = []
    for line in text.split("\n"):
        plain = map_prose(line, lambda part: _CLOSING.sub("", part))
        if plain == line or re.search(r"\w", plain):
            kept.append(plain)
    return "\n".join(kept)


def _is_diff(block: Block) -> bool:
    return block.language.startswith(("diff", "patch"))


def _merged(spans: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(stop, merged[-1][1]))
        else:
            merged.append((start, stop))
    return merged
