"""Interprets uv's messages. Its exit status does not distinguish an unsolvable question from an unavailable index."""

from __future__ import annotations

import re
from collections.abc import Iterable

ABSENT = (
    re.compile(r"Because (?P<name>[\w.-]+) was not found in the package registry"),
    re.compile(r"[Bb]ecause there are no versions of (?P<name>[\w.-]+) and"),
)
ODD_ARCHIVE = re.compile(r"Because (?P<name>[\w.-]+?)==\S+ has a non-PEP 625-compliant source distribution filename")
NO_WHEEL = (
    re.compile(r"Wheels are required for `(?P<name>[\w.-]+)`"),
    re.compile(r"we only found wheels for `(?P<name>[\w.-]+)`"),
)
CAME_LATER = (re.compile(r"`(?P<name>[\w.-]+)` was filtered by `exclude-newer`"),)
NO_SOLUTION = "No solution found when resolving"
UNBUILDABLE = (re.compile(r"Failed to (?:download and )?build `(?P<name>[\w.-]+?)=="),)
_OWN_LINE = r"^(?:error: |  cause: |  Caused by: |  (?:×|├─▶|╰─▶) ).*?"
"""A line of uv's own, in any version; output of a build backend is indented."""
UNREACHABLE = re.compile(
    _OWN_LINE + r"(?:error sending request|dns error|tcp connect error|[Cc]onnection (?:refused|reset)"
    r"|operation timed out|HTTP status server error|429 Too Many Requests|invalid peer certificate"
    r"|Network is unreachable)",
    re.MULTILINE,
)
DISK_FULL = re.compile(_OWN_LINE + "No space left on device", re.MULTILINE)
REFUSED = re.compile(r"lack of valid authentication credentials|returned a 40[13] ")
GONE = re.compile(_OWN_LINE + r"(?:404 Not Found|410 Gone)", re.MULTILINE)
USER_INFO = re.compile(r"(?<=://)[^/@\s]+@")


def scrub(text: str) -> str:
    """*text* without the credentials of URLs."""
    return USER_INFO.sub("", text)


def names(patterns: Iterable[re.Pattern[str]], log: str) -> tuple[str, ...]:
    """The projects that *patterns* find in *log*, whose lines uv may have wrapped."""
    words = " ".join(log.split())
    return tuple(dict.fromkeys(match["name"] for pattern in patterns for match in pattern.finditer(words)))
