"""Pointers to a solution that are no links: the lines that it changes, and the version that has it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from formulacode_dagster.models.paths import PathKind, kind_of
from formulacode_dagster.sources.git.diff import FileDiff, split_patch

_FIXED_IN = re.compile(
    r"\b(?:fixed|resolved|solved|addressed|mended|sped up|optimi[sz]ed|landed|merged|available|much faster|gone)"
    r"[ \t]+(?:again[ \t]+)?(?:in|since|as of|with|by)[ \t]+"
    r"(?:the[ \t]+)?(?:[\w-]{1,40}[ \t]+)?(?:version[ \t]+|release[ \t]+)?"
    # no time, factor, share or size
    r"v?\d{1,4}\.\d{1,4}(?![\w%]|\.?\d*[ \t-]?(?:[mnuµμ]?s|m?sec\w*|m|min(?:ute)?s?|h|hrs?|hours?|days?|weeks?|months?"
    r"|years?|x|fold|times|percent|[kmgt]i?b)\b)",
    re.IGNORECASE,
)
_AFTER = r"(?:[\"'`]?,?[ \t]+(?:on[ \t]+|at[ \t]+)?(?:lines?|l\.)[ \t]+|:|#L|\()"
_RANGE = r"(?P<first>\d{1,6})(?:[ \t]?[-\u2013][ \t]?L?(?P<last>\d{1,6}))?"
_BEFORE = (
    r"\blines?[ \t]+(?P<early>\d{1,6})(?:[ \t]?(?:[-\u2013]|to|and)[ \t]?(?P<late>\d{1,6}))?[ \t]+(?:of|in)[ \t]+"
    r"[\"'`]?[\w./-]{0,100}?"
)


def releases_in(text: str) -> Iterator[str]:
    """Phrases such as `fixed in 2.1`: whoever reads them takes the solution from that release."""
    yield from (match[0] for match in _FIXED_IN.finditer(text))


def places_in(text: str, patch: bytes) -> Iterator[str]:
    """Places in *text*, such as `core.py:120`, at which *patch* changes code."""
    changed: dict[str, set[int]] = {}
    for file in split_patch(patch):
        if file.old_path and kind_of(file.old_path) is PathKind.CORE:
            changed.setdefault(file.old_path.rpartition("/")[2], set()).update(_changed_at_base(file))
    if not changed:
        return
    names = "|".join(sorted(map(re.escape, changed), reverse=True))
    pattern = rf"(?<![\w-])(?P<file>{names}){_AFTER}{_RANGE}|{_BEFORE}\b(?P<named>{names})(?![\w-])"
    for match in re.finditer(pattern, text):
        first = int(match["first"] or match["early"])
        last = int(match["last"] or match["late"] or first)
        if any(first <= line <= last for line in changed[match["file"] or match["named"]]):
            yield match[0]


def _changed_at_base(file: FileDiff) -> Iterator[int]:
    """Lines of the old file that are removed, or next to which something is added."""
    for line in file.changed_lines():
        yield line.old
        if line.sign == "+":
            yield line.old - 1
