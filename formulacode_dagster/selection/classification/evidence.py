"""Checks that a judge's quotations occur in the diff that it was shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

LEAST_CHARACTERS = 8
"""Minimum length of a quotation of part of a line: shorter ones occur in any diff."""
MOST_QUOTED = 200
"""Characters of a wrong quotation that an objection repeats."""


def changed_lines(diff: str) -> tuple[str, ...]:
    """Lines that *diff* adds or removes, without sign and outer blanks; blank ones are none."""
    return tuple(line for line in _changed(diff) if line)


def objection_to(evidence: Sequence[str], diff: str) -> str:
    """Return what is wrong with *evidence* for a verdict on *diff*; empty if each quotes a changed line there.

    A diff without any changed line, of binary files or of renames, needs no evidence.
    """
    lines = changed_lines(diff)
    if not lines:
        return ""
    if not evidence:
        return "evidence is empty: quote at least one added or removed line of the diff"
    for span in evidence:
        if not _stands(span.strip(), lines):
            return (
                f"evidence {span[:MOST_QUOTED]!r} does not stand in an added or removed line of the diff: copy one "
                f"character by character, without its sign, the whole line or at least {LEAST_CHARACTERS} characters"
            )
    return ""


def _stands(span: str, lines: Sequence[str]) -> bool:
    # models tend to copy the sign along
    spans = {span, span[1:].strip()} if span[:1] in ("+", "-") else {span}
    return any(
        each in lines or (len(each) >= LEAST_CHARACTERS and any(each in line for line in lines)) for each in spans
    )


def _changed(diff: str) -> Iterator[str]:
    in_hunk = False
    for line in diff.splitlines():
        if line.startswith(("diff --git ", "@@ ")):
            in_hunk = line.startswith("@@ ")
        elif in_hunk and line[:1] in ("+", "-"):
            yield line[1:].strip()
