"""What is wrong with a file, collected so that a person can mend many lines at once."""

from __future__ import annotations

from pathlib import Path

from formulacode_dagster.models.errors import ConfigurationError

SHOWN = 20
"""So many problems are told of at once; reading stops there."""
VALUE_SHOWN = 60


class EnoughProblems(Exception):
    """SHOWN problems were found."""


class Problems:
    """The problems of the files of one source."""

    def __init__(self) -> None:
        self._found: list[str] = []

    def add(self, path: Path, where: str, column: str, what: str) -> None:
        """Note that in *path*, at *where* (`line 7`, empty for the whole file), *column* (empty: all) is wrong.

        Raises EnoughProblems when no more are wanted.
        """
        place = ", ".join(part for part in (path.name, where, column) if part)
        self._found.append(f"{place}: {what}")
        if len(self._found) >= SHOWN:
            raise EnoughProblems

    def __bool__(self) -> bool:
        return bool(self._found)

    def raise_any(self, source: str) -> None:
        """Raise ConfigurationError naming all that was found in *source*; nothing when that is nothing."""
        if not self._found:
            return
        lines = "".join(f"\n  {one}" for one in self._found)
        more = f"\n  (only the first {SHOWN} are told of)" if len(self._found) >= SHOWN else ""
        raise ConfigurationError(
            f"{source} cannot be taken in",
            why=f"{lines}{more}\n",
            remedy="Mend these; `fc-data offline schema` tells what each column holds",
        )


def shown(value: object) -> str:
    """*value* for a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= VALUE_SHOWN else f"{text[:VALUE_SHOWN]}…"
