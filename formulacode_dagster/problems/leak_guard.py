"""Keeping the solution out of a text: its lines, and the links that lead to it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from .markdown import Block, blocks, map_prose, map_unfenced, tidy
from .solution import changed_lines, solution_lines, words_of

WITHHELD = "[withheld]"
LINK_WITHHELD = "[link withheld]"

_WORD = re.compile(r"\w+")
_HUNK = re.compile(r"^[ \t>]*(?:@@ -\d+(?:,\d+)? \+\d+|diff --git |--- a/|\+\+\+ b/)", re.MULTILINE)
_QUOTED = re.compile(r"^[\s>+-]*")
_SHORTEST_SHA = 7


@dataclass(frozen=True)
class Guarded:
    """A text without the solution, and how many of its lines, or places within lines, were withheld."""

    text: str
    withheld: int


class Solution:
    """A patch, prepared to be looked for in texts."""

    def __init__(self, patch: bytes) -> None:
        self._by_start: defaultdict[tuple[str, ...], list[list[str]]] = defaultdict(list)
        for line in solution_lines(patch):
            words = words_of(line)
            self._by_start[tuple(words[:3])].append(words)
        self._added = changed_lines(patch, added_only=True)

    def withhold(self, text: str) -> Guarded:
        """*text* with every distinctive line of the patch withheld: lines of code whole, in prose the place alone.

        A block that shows a diff goes whole when it holds any of them or has hunks, since what surrounds the lines
        gives the rest away.
        """
        parts: list[str] = []
        withheld = 0
        for block in blocks(text):
            part, count = self._fenced(block) if block.fenced else self._prose(block.text)
            parts.append(part)
            withheld += count
        return Guarded("".join(parts), withheld)

    def _fenced(self, block: Block) -> tuple[str, int]:
        first, *lines = block.text.split("\n")
        closed = bool(lines) and lines[-1].strip(" \t>").startswith(("```", "~~~"))
        body, last = (lines[:-1], [lines[-1]]) if closed else (lines, [])
        code = "\n".join(body)
        hit = self._lines_hit(code)
        if _HUNK.search(code) or block.language.startswith("suggestion") or (hit and _is_diff(block)):
            return "\n".join([first, WITHHELD, *last]), len(body)
        if not hit:
            return block.text, 0
        # beside distinctive lines, the plain ones of the patch are its lines too
        hit |= {n for n, line in enumerate(body) if _QUOTED.sub("", line).strip() in self._added}
        kept = [WITHHELD if n in hit else line for n, line in enumerate(body) if n not in hit or n - 1 not in hit]
        return "\n".join([first, *kept, *last]), len(hit)

    def _prose(self, text: str) -> tuple[str, int]:
        parts: list[str] = []
        end = count = 0
        for start, stop in _merged(self._spans(text)):
            while start > end and not text[start - 1].isspace():
                start -= 1
            while stop < len(text) and not text[stop].isspace():
                stop += 1
            if start < end:
                end = max(end, stop)
                continue
            parts += (text[end:start], WITHHELD)
            end, count = stop, count + 1
        return "".join((*parts, text[end:])), count

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
    """*text* without what leads to the pull request: its number, links to it, to commits, comparisons and forks.

    *shas* are its commits. Phrases that close issues ("Fixes #12") go too; other references stay.
    """
    trail = _Trail(repository, number, tuple(shas))
    text = re.sub(r"\[(?P<text>[^\]\n]{0,300})\]\((?P<url>https?://[^)\s]+)[^)\n]*\)", trail.without_link, text)
    text = re.sub(r"(?:https?://|\bgit@github\.com:)[^\s<>()\[\]\"'`]+", trail.without_url, text)
    reference = rf"(?:(?:{re.escape(repository)})?#|\bGH-){number}\b"
    text = re.sub(rf"\({reference}\)|(?<![\w/]){reference}", LINK_WITHHELD, text, flags=re.IGNORECASE)
    text = re.sub(r"(?<![\w/.-])[0-9a-f]{7,40}(?![\w-])", trail.without_sha, text)
    text = map_unfenced(text, _without_closing_phrases)
    return tidy(text)


@dataclass(frozen=True)
class _Trail:
    repository: str
    number: int
    shas: tuple[str, ...]

    def without_link(self, match: re.Match[str]) -> str:
        return match["text"] if self._leads_there(match["url"]) else match[0]

    def without_url(self, match: re.Match[str]) -> str:
        return LINK_WITHHELD if self._leads_there(match[0]) else match[0]

    def without_sha(self, match: re.Match[str]) -> str:
        return "[commit withheld]" if self._is_ours(match[0]) else match[0]

    def _leads_there(self, url: str) -> bool:
        if any(self._is_ours(part) for part in re.findall(r"[0-9a-f]{7,40}", url)):
            return True
        owner, _, name = self.repository.lower().partition("/")
        path = urlsplit(url.lower().replace("git@github.com:", "ssh://git@github.com/")).path
        match = re.search(rf"/?(?P<owner>[^/]+)/{re.escape(name)}(?:\.git)?(?:/(?P<rest>.*))?$", path)
        if match is None:
            return False
        rest = match["rest"] or ""
        if match["owner"].removeprefix("repos/") != owner:
            return True
        return bool(
            re.match(rf"(?:pulls?|issues)/{self.number}(?!\d)|commits?/|compare/", rest)
            or re.search(r"\.(?:patch|diff)$", rest)
        )

    def _is_ours(self, text: str) -> bool:
        return len(text) >= _SHORTEST_SHA and any(sha.startswith(text) for sha in self.shas)


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
