"""The log of one task's measurement."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.errors import ItemFailure, Rejection


class Log:
    """The log of one task's measurement; each line is also reported to the listener."""

    def __init__(self, progress: ProgressReporter | None) -> None:
        self.lines: list[str] = []
        self._progress = progress

    def __call__(self, line: str) -> None:
        """Append *line* and report it."""
        self.lines.append(line)
        if self._progress is not None:
            self._progress(line)

    def keep(self, text: str) -> None:
        """Keep *text* without telling anybody."""
        self.lines.extend(text.splitlines())

    @contextmanager
    def told_by_failures(self) -> Iterator[None]:
        """Give a failure or rejection inside the `with` block this log, unless it has one."""
        try:
            yield
        except (ItemFailure, Rejection) as end:
            end.log = end.log or "\n".join(self.lines)
            raise
