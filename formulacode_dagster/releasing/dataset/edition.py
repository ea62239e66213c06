"""One release of a month: the first, `formulacode@2026-03`, or a revision of it, `formulacode@2026-03.1`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.release import Correction


@dataclass(frozen=True)
class Edition:
    """Content released under one tag, and the card's facts besides the rows."""

    month: Month
    accepted: tuple[str, ...] = ()
    """Failures of the month that people accepted, a line each."""
    corrections: tuple[Correction, ...] = ()
    """One for every revision up to this one, the first of them first."""

    @property
    def number(self) -> int:
        """0 for the first release of the month."""
        return len(self.corrections)

    @property
    def tag(self) -> str:
        """The tag it is kept under."""
        return self.month.tag(self.number)


def parse_tag(tag: str) -> tuple[Month, int]:
    """Return the month that *tag* releases, and the number of the revision; ConfigurationError for an invalid tag."""
    match = re.fullmatch(r"formulacode@(\d{4}-\d{2})(?:\.([1-9]\d*))?", tag)
    if match is None:
        raise ConfigurationError(f"{tag!r} is not a tag of a release", remedy="Write it as formulacode@2026-03")
    return Month.parse(match[1]).previous(), int(match[2] or 0)


def newest_number(month: Month, tags: Iterable[str]) -> int | None:
    """The number of the newest release of *month* among *tags*; None when it was never released."""
    pattern = re.compile(rf"{re.escape(month.tag())}(?:\.(?P<number>[1-9]\d*))?")
    matches = [match for tag in tags if (match := pattern.fullmatch(tag))]
    return max((int(match["number"] or 0) for match in matches), default=None)
