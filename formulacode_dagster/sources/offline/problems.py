"""Problems of a file, collected so that a person can fix many lines together."""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from formulacode_dagster.models.errors import ConfigurationError

SHOWN = 20
"""Reading stops after this many problems."""
VALUE_SHOWN = 60


class EnoughProblems(Exception):
    """SHOWN problems were found."""


class Problems:
    """The problems of the files of one source."""

    def __init__(self) -> None:
        self._found: list[str] = []

    def add(self, path: Path, where: str, column: str, what: str) -> None:
        """Record that in *path*, at *where* (`line 7`, empty for the whole file), *column* (empty: all) is wrong.

        Raises EnoughProblems when no more are wanted.
        """
        place = ", ".join(part for part in (path.name, where, column) if part)
        self._found.append(f"{place}: {what}")
        if len(self._found) >= SHOWN:
            raise EnoughProblems

    def add_row(self, path: Path, where: str, error: ValidationError) -> None:
        """Record every cell that *error* rejects in the row at *where*; raises EnoughProblems as `add` does."""
        for fault in error.errors(include_url=False):
            match fault["type"]:
                case "missing":
                    what = "is empty"
                case "value_error":
                    what = f"is {_shown(fault['input'])}: {fault['ctx']['error']}"
                case _:
                    what = f"is {_shown(fault['input'])}: {fault['msg']}"
            self.add(path, where, ".".join(map(str, fault["loc"])), what)

    def raise_any(self, source: str) -> None:
        """Raise ConfigurationError naming all that was found in *source*; nothing when that is nothing."""
        if not self._found:
            return
        lines = "".join(f"\n  {problem}" for problem in self._found)
        more = f"\n  (only the first {SHOWN} are listed)" if len(self._found) >= SHOWN else ""
        raise ConfigurationError(
            f"{source} cannot be taken in",
            why=f"{lines}{more}\n",
            remedy="Fix these; `fc-data offline schema` describes each column",
        )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= VALUE_SHOWN else f"{text[:VALUE_SHOWN]}…"
