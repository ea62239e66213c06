"""The command line's operations on months: read them, run them, show their funnels, check the outside systems."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import partial

import dagster as dg
from rich.console import Console
from rich.markup import escape

from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.items import ItemKind, ItemState, RunOptions, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.operating.runner.progress import listening
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.lookup import find_pull_request
from formulacode_dagster.operating.store.measurements import measurements_of
from formulacode_dagster.operating.store.spending import spending_of
from formulacode_dagster.operating.store.usage import usage_totals
from formulacode_dagster.orchestration.runs import MonthResult, run_month, set_pools
from formulacode_dagster.releasing.reporting.forecast import MOST_MONTHS, Forecast, forecast
from formulacode_dagster.releasing.reporting.funnel import Funnel, count_funnel
from formulacode_dagster.sources.github.origin import require_same_github
from resources.agents import AgentsResource
from resources.alerts import AlertsResource
from resources.containers import ContainersResource
from resources.database import open_database
from resources.hub import HubResource
from resources.intake import IntakeResource
from resources.llm import LLMResource
from resources.probes import Health, ProbeResult, probe, programs
from resources.registry import RegistryResource
from resources.settings import Settings, read_settings

from .fates import show_fates
from .terminal import Bars, show_endings, show_funnel


def database(*, migrated: bool = True) -> closing[Database]:
    """The platform's database, as the settings name it, to be used in a `with` block."""
    return closing(open_database(migrated=migrated))


def require_own_months(store: Database, github: str, known: Collection[str] = ()) -> None:
    """Raise ConfigurationError if the months of *store* are from another GitHub; *known* are all names of this one."""
    with store.transaction() as connection:
        require_same_github(connection, github, known)


def months_of(month: str | None, start_date: str | None, end_date: str | None) -> list[Month]:
    """The months that `--month`, or both dates, name; raises ConfigurationError when they name none."""
    from assets.partitions import closed_month

    if month is not None and start_date is None and end_date is None:
        return [closed_month(month)]
    if month is None and start_date is not None and end_date is not None:
        first, end = _first_of_month(start_date), _first_of_month(end_date)
        months: list[Month] = []
        while first.key < end.key:
            months.append(closed_month(first.key))
            first = first.next()
        if months:
            return months
        raise ConfigurationError(f"{start_date} to {end_date} contains no month", remedy="Put the end after the start")
    raise ConfigurationError(
        "no month was given", remedy="Give --month 2026-02, or --start-date 2026-02-01 --end-date 2026-03-01"
    )


def _first_of_month(text: str) -> Month:
    try:
        day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        day = None
    if day is None or day.day != 1:
        raise ConfigurationError(
            f"{text!r} is not the first day of a month", remedy="Months are whole: write 2026-02-01"
        )
    return Month.parse(f"{day.year:04d}-{day.month:02d}")


def read_funnel(store: Database, month: Month) -> Funnel:
    """The funnel of *month*, as the ledger and the books have it now."""
    with store.transaction() as connection:
        entries, usage = ledger.entries_of(connection, month.key), usage_totals(connection, month.key)
        return count_funnel(month.key, entries, usage, spending_of(connection, month.key))


def read_forecast(
    store: Database, month: Month, pull_requests: int | None = None, *, as_planned: bool = False
) -> Forecast:
    """Return what *month* will come to, by the months before it; raises as `forecast`.

    *as_planned* is what was to be expected once its pull requests were taken in, whatever it has done since.
    """
    with store.transaction() as connection:
        before = ledger.months_with_done(connection, Stage.PULL_REQUESTS, ItemKind.PULL_REQUEST, before=month.key)
    earlier = [read_funnel(store, Month.parse(key)) for key in before[-MOST_MONTHS:]]
    current = read_funnel(store, month)
    if as_planned:
        return forecast(count_funnel(month.key, ()), earlier, current.count("pull_requests") or None)
    return forecast(current, earlier, pull_requests)


def read_plan(store: Database, month: Month) -> Forecast | None:
    """Return what was to be expected of *month* once its pull requests were taken in; None without an earlier month."""
    try:
        return read_forecast(store, month, as_planned=True)
    except ConfigurationError:
        return None


def run_months(
    console: Console,
    instance: dg.DagsterInstance,
    months: Sequence[Month],
    options: RunOptions,
    *,
    stages: tuple[Stage, ...] = (),
) -> bool:
    """Run *months* one after the other, with progress bars; true when every asset and blocking check passed."""
    set_pools(instance)
    succeeded = True
    # held for the whole command, so that the embedded server is not stopped and started between runs
    with database() as store:
        for month in months:
            started = time.monotonic()
            console.rule(f"[bold]{month}")
            with Bars(console, speedup_of=partial(_speedup, store)) as bars, listening(bars):
                result = run_month(instance, month, options, stages=stages)
            show_result(console, result, time.monotonic() - started)
            succeeded = succeeded and result.success
            if not options.dry_run:
                _show_month(console, store, month, stages)
            if options.only and not options.dry_run:
                show_fates(console, store, month, options.only)
        if not succeeded:
            console.print(f"To know more: {_tells_more(store, months, stages)}", markup=False, highlight=False)
    return succeeded


def _speedup(store: Database, item: str) -> str:
    """The newest measured speed-up of *item* with its 95 % interval."""
    name, measured = ItemName.parse(item), []
    # a line of progress: without the store, the run itself says so
    with suppress(OutsideSystemError), store.transaction() as connection:
        stored = find_pull_request(connection, name.repository, name.number or 0)
        if stored is not None:
            facts = stored.facts
            measured = measurements_of(connection, facts.month, (facts.repository_id, facts.number))
    return f"{measured[-1].speedup_text} ({measured[-1].low:.2f} to {measured[-1].high:.2f})" if measured else ""


def _show_month(console: Console, store: Database, month: Month, stages: tuple[Stage, ...]) -> None:
    try:
        with store.transaction() as connection:
            ended = ledger.endings(connection, month.key)
        show_endings(console, [ending for ending in ended if not stages or ending.stage in stages])
        if not stages:
            show_funnel(console, read_funnel(store, month))
    except OutsideSystemError:
        # the run has said so already
        return


def _tells_more(store: Database, months: Sequence[Month], stages: Sequence[Stage]) -> str:
    """Return the command with details on a failure: of an item if one failed, of the month, or of a dead system.

    If only some *stages* were run, it is an item that one of these lost.
    """
    try:
        losses = [loss for month in months for loss in read_funnel(store, month).losses]
    except OutsideSystemError:
        return "fc-data preflight"
    failed = [
        loss.examples[0] for loss in losses if (loss.stage in stages if stages else loss.state is ItemState.FAILED)
    ]
    return f"fc-data why {failed[0]}" if failed else f"fc-data funnel --month {months[-1]}"


def show_result(console: Console, result: MonthResult, seconds: float) -> None:
    """Return one line on success; else the failures, and every failed check."""
    for check in result.failed_checks:
        console.print(f"[yellow]check failed:[/] {escape(check)}", highlight=False)
    for error in result.errors:
        console.print(f"[bold red]failed:[/] {escape(error)}", highlight=False)
    word = "[green]succeeded[/]" if result.success else "[bold red]failed[/]"
    console.print(f"{result.month} {word} in {seconds:.1f} s (run {result.run_id})", highlight=False)


def check_systems() -> list[ProbeResult]:
    """Probe every outside system that the settings name; none while a setting has no value that can be."""
    settings = probe("settings", _settings)
    if settings.health is Health.BROKEN:
        return [probe("programs", programs), settings]
    asked = {
        # intake knows whether GitHub is used at all
        "github": IntakeResource().preflight,
        "llm": LLMResource().preflight,
        "containers": ContainersResource().preflight,
        "agents": AgentsResource().preflight,
        "registry": RegistryResource().preflight,
        "hub": HubResource().preflight,
        "alerts": AlertsResource().preflight,
    }
    return [
        probe("programs", programs),
        settings,
        probe("postgres", _database),
        *(probe(name, preflight) for name, preflight in asked.items()),
    ]


def _settings() -> tuple[bool, str]:
    return True, f"{len(read_settings().model_fields_set)} of {len(Settings.model_fields)} are set"


def _database() -> tuple[bool, str]:
    settings = read_settings()
    with database() as store:
        # a pooler's connections are unknown to the server
        room = None if settings.database_transaction_pooling else store.room()
        processes = 1 + settings.helper_runs
        if room is not None and processes * settings.database_connections > room:
            return False, (
                f"{store.where} has {room} connections, and a run with {settings.helper_runs} helpers may take"
                f" {processes} times {settings.database_connections}: raise its max_connections, or set"
                f" FC_DATABASE_CONNECTIONS to {room // processes} at most"
            )
        return True, f"{store.where} answers and is up to date"
