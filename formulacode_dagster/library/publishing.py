"""A month released from a script, under the rules under which the pipeline releases it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from formulacode_dagster.models.errors import ConfigurationError, GateClosedError, ItemFailure
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.release import Release
from formulacode_dagster.operating.runner.gatekeeping import require_open
from formulacode_dagster.operating.store import artifacts
from formulacode_dagster.operating.store.acceptances import acceptances
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.releasing.dataset.checks import reads_back_equal
from formulacode_dagster.releasing.dataset.destination import Destination
from formulacode_dagster.releasing.dataset.edition import newest_number, parse_tag
from formulacode_dagster.releasing.dataset.gate import release_gate
from formulacode_dagster.releasing.dataset.readiness import RELEASE_GATES, parts_left_out, require_tasks
from formulacode_dagster.releasing.dataset.records import month_records
from formulacode_dagster.releasing.dataset.tables import MonthTables, first_difference, month_tables
from formulacode_dagster.releasing.dataset.task_tables import TaskRecords
from resources.destination import open_destination
from resources.settings import read_settings

from .records import opened


@dataclass(frozen=True)
class HuggingFacePublisher:
    """Releases months of *database* (one, or its URL) to *destination*; None means those of the settings."""

    destination: Destination | None = None
    database: Database | str | None = None

    def publish(self, records: Sequence[TaskRecords], *, version: str, correction: str = "") -> Release:
        """Release *records*, all of a month's, as *version*: `formulacode@2026-03`, or `….1` with a *correction*.

        Released again with the same rows, it is only read back. The next run of `published_dataset` does that too, and
        enters the tasks in the ledger.

        Raises GateClosedError if a gate of the month is closed, parts of it were left out or all tasks were lost;
        ConfigurationError if *records* are not the month's as the database holds it, or *version* is not the next or
        corrects nothing; ItemFailure (`released_tag`) for other rows without a *correction*; else as the destination
        does.
        """
        month, number = parse_tag(version)
        destination = self.destination or open_destination(read_settings())
        with opened(self.database) as store, store.month_lock(Stage.PUBLISHED_DATASET, month.key, "library"):
            require_open(store, month.key, RELEASE_GATES)
            with store.transaction() as connection:
                stored = month_records(connection, month.key)
                gate = release_gate(connection, month.key, stored)
                held = month_tables(list(stored.values()))
                accepted = acceptances(connection, month.key)
                require_tasks(connection, month.key, held.tasks.height, accepted)
                if left_out := parts_left_out(connection, month.key):
                    raise GateClosedError(f"{month} is not released", why=left_out)
            tables = month_tables(records, gate)
            _require_whole(month, tables, held)
            _require_next(version, number, newest_number(month, destination.tags()), correction)
            release = destination.release(month, tables, accepted, correction)
            with store.transaction() as connection:
                artifacts.RELEASES.save(connection, [release])
        judged = reads_back_equal(month.key, [release])
        if not judged.passed:
            raise ItemFailure(FailureKind.MISMATCH, f"{release.tag} differs from the published one", why=judged.summary)
        if release.tag != version:
            raise ConfigurationError(f"{version} was not released", why=f"it would contain the rows of {release.tag}")
        return release


def _require_whole(month: Month, tables: MonthTables, held: MonthTables) -> None:
    if tables.checksum != held.checksum:
        raise ConfigurationError(
            f"these records are not {month} as the database holds it",
            why=f"against it {first_difference(held, tables)}",
            remedy=f"Publish all that `records` gives from {month.start:%Y-%m-%d} to {month.end:%Y-%m-%d}",
        )


def _require_next(version: str, number: int, newest: int | None, correction: str) -> None:
    """The existing release may be requested again; a revision comes after it, with a reason."""
    is_revision = newest is not None and number == newest + 1
    if number != (newest or 0) and not is_revision:
        raise ConfigurationError(
            f"{version} is not the next release of its month", why=f"the newest is number {newest or 0}, the first 0"
        )
    if is_revision != bool(correction.strip()):
        raise ConfigurationError(
            f"{version} {'is a revision' if is_revision else 'corrects nothing'}",
            remedy="Give a revision, `….1`, and its correction, the reason for it, together",
        )
