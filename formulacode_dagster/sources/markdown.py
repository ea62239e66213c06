"""Prose and code in GitHub's Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_FENCE = (
    r"^[ \t>]*(?:[*+-][ \t]+)?(?P<fence>`{3,}|~{3,})(?P<info>[^`\n]*)\n"
    r"(?:(?P<code>[\s\S]*?\n)??[ \t>]*(?P=fence)[`~]*[ \t]*$|[\s\S]*\Z)"
)
_INLINE = r"(?<!`)(?P<tick>`+)(?!`)(?:(?!\n[ \t]*\n)[\s\S])+?(?<!`)(?P=tick)(?!`)"
_FENCED = re.compile(_FENCE, re.MULTILINE)
_CODE = re.compile(f"{_FENCE}|{_INLINE}", re.MULTILINE)
_CODE_OR_COMMENT = re.compile(rf"(?P<comment><!--[\s\S]*?(?:-->|\Z))|{_FENCE}|{_INLINE}", re.MULTILINE)
_TASK = re.compile(r"^[ \t>]*(?:[-*+]|\d+[.)])[ \t]+\[[ xX]?\](?:[ \t].*)?\n?", re.MULTILINE)
_TRAILER = re.compile(
    r"^[ \t]*(?:co-authored|signed-off|reviewed|acked|tested|reported|suggested|helped)-by:[ \t].*<.*>[ \t]*\n?",
    re.MULTILINE | re.IGNORECASE,
)
_TAGS = re.compile(r"</?(?:details|summary|br|p|div|sub|sup|picture|source|img)\b[^>\n]*>", re.IGNORECASE)
_HEADING = re.compile(r"^(#{1,6})[ \t]")


@dataclass(frozen=True)
class Block:
    """A segment of text: a fenced code block with its fences, or the text between two."""

    text: str
    fenced: bool
    language: str = ""


def blocks(text: str) -> list[Block]:
    """*text* in stretches whose concatenation it is. A fence that is never closed runs to the end, as on GitHub."""
    blocks: list[Block] = []
    end = 0
    for match in _FENCED.finditer(text):
        blocks.append(Block(text[end : match.start()], fenced=False))
        blocks.append(Block(match[0], fenced=True, language=match["info"].strip().lower()))
        end = match.end()
    blocks.append(Block(text[end:], fenced=False))
    return [block for block in blocks if block.text]


def map_unfenced(text: str, change: Callable[[str], str]) -> str:
    """*text* with *change* applied outside fenced code."""
    return "".join(block.text if block.fenced else change(block.text) for block in blocks(text))


def map_prose(text: str, change: Callable[[str], str]) -> str:
    """*text* with *change* applied outside all code, fenced or inline."""
    parts: list[str] = []
    end = 0
    for match in _CODE.finditer(text):
        parts += (change(text[end : match.start()]), match[0])
        end = match.end()
    return "".join((*parts, change(text[end:])))


def inline_code(text: str) -> list[str]:
    """Return the texts between backticks in *text*, which has no fences."""
    return [match[0].strip("`") for match in re.finditer(_INLINE, text)]


def prose(text: str) -> str:
    """Return *text* with each fenced block, code span and HTML comment replaced by a blank."""
    return _CODE_OR_COMMENT.sub(" ", text.replace("\r\n", "\n"))


def without_boilerplate(text: str) -> str:
    """*text* without HTML comments, checklists, commit trailers, layout tags, and headings that then head nothing."""
    text = text.replace("\r\n", "\n")
    text = _CODE_OR_COMMENT.sub(lambda match: "" if match["comment"] else match[0], text)
    text = map_unfenced(text, lambda part: _TAGS.sub("", _TRAILER.sub("", _TASK.sub("", part))))
    return tidy(_without_empty_headings(text))


def without_sections(text: str, heading: re.Pattern[str]) -> str:
    """*text* without the sections whose heading *heading* matches, up to the next heading of their level or above."""
    kept: list[str] = []
    skipped = 0
    for block in blocks(text):
        for line in [block.text] if block.fenced else block.text.splitlines(keepends=True):
            match = None if block.fenced else _HEADING.match(line)
            if match is not None and (not skipped or len(match[1]) <= skipped):
                skipped = len(match[1]) if heading.search(line) else 0
            if not skipped:
                kept.append(line)
    return "".join(kept)


def tidy(text: str) -> str:
    """*text* without trailing blanks, surrounding blank lines, or more than one blank line in a row outside code."""
    return map_unfenced(text, _tidy).strip()


def _tidy(part: str) -> str:
    # the last line may continue with a fence
    *lines, last = part.split("\n")
    return re.sub(r"\n{3,}", "\n\n", "\n".join([*(line.rstrip(" \t") for line in lines), last]))


def _without_empty_headings(text: str) -> str:
    lines = [
        line
        for block in blocks(text)
        for line in ([block.text] if block.fenced else block.text.splitlines(keepends=True))
    ]
    kept: list[str] = []
    # from the end: a heading is empty if nothing follows it, or a heading of its own level or above
    below = 0
    for line in reversed(lines):
        match = _HEADING.match(line)
        if match is None:
            below = below if not line.strip() else 7
        elif below < 7 and below <= len(match[1]):
            continue
        else:
            below = len(match[1])
        kept.append(line)
    return "".join(reversed(kept))
