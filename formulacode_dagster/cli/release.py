"""`fc-data release`: releases of a month, and corrections. Nothing is published without `--publish`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName

from .console import console, table_of
from .sandbox import with_demo_services

if TYPE_CHECKING:
    from formulacode_dagster.models.month import Month
    from formulacode_dagster.releasing.dataset.destination import Destination

app = typer.Typer(help="Look at the releases of a month, revise them, withdraw a task.", no_args_is_help=True)

MonthOption = Annotated[str, typer.Option("--month", help="Month, YYYY-MM.")]
Reason = Annotated[str, typer.Option(help="Why; the dataset's card prints it.")]
Publish = Annotated[bool, typer.Option("--publish", help="Apply; by default, only show the changes.")]


@app.command()
@with_demo_services
def show(month: MonthOption) -> None:
    """List the releases of a month, and show the changes that releasing it now would make."""
    from rich.markup import escape

    from formulacode_dagster.releasing.dataset.edition import newest_number
    from formulacode_dagster.releasing.dataset.index import INDEX_FILE, DatasetIndex

    from .operate import months_of
    from .terminal import plain

    (wanted,) = months_of(month, None, None)
    destination = _destination()
    newest = newest_number(wanted, destination.tags())
    table = table_of("tag", "tasks", "verified", "against the release before", "why")
    for number in range(newest + 1 if newest is not None else 0):
        tag = wanted.tag(number)
        index = DatasetIndex.parse(destination.content(INDEX_FILE, tag), f"{destination.name} at {tag}")
        facts = index.month(wanted.key)
        made = facts.corrections[-1] if facts and facts.corrections else None
        counts = (str(facts.tasks), str(facts.verified)) if facts else ("?", "?")
        texts = (made.difference, made.reason) if made else ("", "")
        table.add_row(tag, *counts, *(escape(plain(text)) for text in texts))
    console.print(table)
    _plan(destination, wanted)


@app.command()
@with_demo_services
def verify(
    month: Annotated[str, typer.Option("--month", help="Month, YYYY-MM.", show_default="all")] = "",
    source: Annotated[
        str,
        typer.Option("--from", help="hub, or a folder of the dataset.", show_default="HF_DATASET or FC_DATASET_DIR"),
    ] = "",
) -> None:
    """Read each recorded release again, and compare rows and columns with the record; status 1 if any differs."""
    from formulacode_dagster.operating.store.artifacts import RELEASES
    from formulacode_dagster.releasing.dataset.integrity import verify_releases

    from .operate import database

    destination = _destination(source)
    with database() as store, store.transaction() as connection:
        recorded = [
            release
            for release in RELEASES.read_all(connection)
            if release.destination == destination.name and month in ("", release.month)
        ]
    if not recorded:
        raise ConfigurationError(
            f"no release {f'of {month} ' if month else ''}is recorded at {destination.name}",
            remedy="Name the place that it was released to by --from, and its database by FC_DATABASE_URL",
        )
    found = verify_releases(recorded, destination)
    console.print("\n".join([found.summary, *found.offenders]), markup=False, highlight=False)
    raise typer.Exit(not found.passed)


@app.command()
@with_demo_services
def revise(month: MonthOption, reason: Reason, publish: Publish = False) -> None:
    """Release a month again as the database holds it now, under a separate tag; older tags stay."""
    from .operate import months_of

    (wanted,) = months_of(month, None, None)
    _release(wanted, reason, publish=publish)


@app.command()
@with_demo_services
def withdraw(
    item: Annotated[str, typer.Argument(help="owner/repo#123.")],
    by: Annotated[str, typer.Option(help="Your name: the card prints it.")],
    reason: Reason,
    publish: Publish = False,
) -> None:
    """Remove a task from the dataset, by a revision of its month without it; older tags keep it."""
    from formulacode_dagster.models.month import Month
    from formulacode_dagster.models.release import Withdrawal
    from formulacode_dagster.operating.store.acceptances import add_withdrawal, withdrawals
    from formulacode_dagster.operating.store.lookup import find_pull_request
    from formulacode_dagster.releasing.dataset.parquet import KEY

    from .operate import database

    name, destination = ItemName.parse(item), _destination()
    with database() as store:
        with store.transaction() as connection:
            stored = find_pull_request(connection, name.repository, name.number) if name.number else None
            if stored is None:
                raise ConfigurationError(f"{name} is not a known pull request", remedy="Write it as owner/repo#123")
            facts = stored.facts
            known = withdrawals(connection, facts.month).get(facts.task_id)
        month = Month.parse(facts.month)
        released = destination.read(month)
        if released is None or facts.task_id not in released.frame[KEY].to_list():
            raise ConfigurationError(f"{facts.task_id} is in no newest release of {month} at {destination.name}")
        withdrawal = known or Withdrawal(
            month=month.key,
            task_id=facts.task_id,
            withdrawn_at=datetime.now(UTC),
            withdrawn_by=by,
            reason=reason,
        )
        if publish:
            with store.transaction() as connection:
                add_withdrawal(connection, withdrawal)
    _release(month, withdrawal.correction, publish=publish, without=(facts.task_id,))


def _destination(source: str = "") -> Destination:
    """Return the configured destination; *source* is `hub`, or a folder, instead."""
    from resources.destination import open_destination
    from resources.settings import read_settings

    settings = read_settings({"hf_dataset": "", "dataset_dir": source} if source not in ("", "hub") else None)
    if source == "hub" and not settings.hf_dataset:
        raise ConfigurationError("HF_DATASET is empty", remedy="Set it to the dataset's owner/name on the Hub")
    return open_destination(settings)


def _release(month: Month, reason: str, *, publish: bool, without: tuple[str, ...] = ()) -> None:
    from formulacode_dagster.library.publishing import HuggingFacePublisher
    from formulacode_dagster.releasing.dataset.edition import newest_number
    from formulacode_dagster.releasing.dataset.records import month_records

    from .operate import database

    destination = _destination()
    if not publish:
        _plan(destination, month, reason, without=without)
        console.print("Nothing was written; use --publish to apply.", highlight=False)
        return
    with database() as store:
        with store.transaction() as connection:
            records = list(month_records(connection, month.key).values())
        newest = newest_number(month, destination.tags())
        if newest is None:
            raise ConfigurationError(
                f"{month} was never released",
                remedy=f"Release it: fc-data run --month {month} --stage published_dataset",
            )
        publisher = HuggingFacePublisher(destination, store)
        made = publisher.publish(records, version=month.tag(newest + 1), correction=reason)
    console.print(f"{made.tag} at {made.destination}: {made.difference}", markup=False, highlight=False)


def _plan(destination: Destination, month: Month, reason: str = "", *, without: tuple[str, ...] = ()) -> None:
    from formulacode_dagster.operating.store.acceptances import acceptances
    from formulacode_dagster.releasing.dataset.gate import release_gate
    from formulacode_dagster.releasing.dataset.plan import plan
    from formulacode_dagster.releasing.dataset.records import month_records
    from formulacode_dagster.releasing.dataset.tables import month_tables

    from .operate import database

    with database() as store, store.transaction() as connection:
        records = month_records(connection, month.key)
        kept = {item: record for item, record in records.items() if record.row.task_id not in without}
        gate = release_gate(connection, month.key, kept)
        accepted = acceptances(connection, month.key)
    planned = plan(destination, month, month_tables(list(kept.values()), gate), accepted, reason)
    console.print(planned.text, markup=False, highlight=False)
