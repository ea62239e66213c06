"""Reports the changes of a month's release without writing anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from formulacode_dagster.models.check import Acceptance
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.reasons import FailureKind

from .destination import Destination, edition_to_release, files_of
from .index import INDEX_FILE, DatasetIndex
from .tables import MonthTables

NO_REASON = "to be given"
"""Placeholder for the missing reason of a revision."""


@dataclass(frozen=True)
class Plan:
    """Rows to release, and the resulting changes at the destination."""

    destination: str
    tag: str
    tasks: int
    difference: str = ""
    """Changes of a revision from the release before; empty for the first release."""
    files: Mapping[str, int] = field(default_factory=dict)
    """Bytes of each file that would be written."""
    needs_reason: bool = False
    """True for a revision without a reason, which would be refused."""

    @property
    def text(self) -> str:
        """All of it in one line for each thing."""
        if not self.files:
            return f"nothing would change: {self.tag} at {self.destination} holds these {self.tasks} tasks"
        lines = [f"{self.tag} would be written to {self.destination}, {self.tasks} tasks"]
        if self.difference:
            lines.append(f"against the release before: {self.difference}")
        if self.needs_reason:
            lines.append("it would be refused: a revision needs a reason")
        return "\n".join([*lines, *(f"  {path}  {size:,} bytes" for path, size in self.files.items())])


def plan(
    destination: Destination,
    month: Month,
    tables: MonthTables,
    accepted: Sequence[Acceptance] = (),
    correction: str = "",
) -> Plan:
    """Return what `destination.release` would do; raises the errors of reading there, and `schema_changed`."""
    tags = destination.tags()
    there = (tags, destination.content, destination.name, accepted)
    needs_reason = False
    try:
        edition, tables, is_new = edition_to_release(month, tables, *there, correction)
    except ItemFailure as failure:
        if failure.kind is not FailureKind.RELEASED_TAG:
            raise
        needs_reason = True
        edition, tables, is_new = edition_to_release(month, tables, *there, NO_REASON)
    if not is_new:
        return Plan(destination.name, edition.tag, tables.tasks.height)
    # without a tag there need not be a dataset to ask
    found = destination.content(INDEX_FILE) if tags else None
    index = DatasetIndex.parse(found, f"{destination.name}, {INDEX_FILE}")
    files = files_of(edition, tables, index, destination.url)
    return Plan(
        destination.name,
        edition.tag,
        tables.tasks.height,
        difference=edition.corrections[-1].difference if edition.corrections else "",
        files={
            path: len(content) for path, content in files.items() if not tags or destination.content(path) != content
        },
        needs_reason=needs_reason,
    )
