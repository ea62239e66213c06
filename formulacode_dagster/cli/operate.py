"""What the command line does with months: run them, read their funnels, look after the outside systems."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dagster as dg
from rich.console import Console
from rich.markup import escape

from formulacode_dagster.items.progress import listening
from formulacode_dagster.models.items import RunOptions, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.orchestration.runs import MonthResult, run_month, set_pools
from formulacode_dagster.reporting.funnel import Funnel, count_funnel
from formulacode_dagster.store import ledger
from formulacode_dagster.store.database import Database
from formulacode_dagster.store.usage import usage_totals
from resources.defaults import default_resources
from resources.settings import home, value_of

from .probes import Finding, Health, probe, programs
from .terminal import Bars, show_funnel


def resolved(name: str) -> Any:
    """One of the default resources, its settings read from the environment."""
    resource = default_resources()[name]
    # Dagster's own way opens a storage for it, and closes it noisily
    fields = {field: getattr(resource, field) for field in type(resource).model_fields}
    return type(resource)(
        **{field: value.get_value() if isinstance(value, dg.EnvVar) else value for field, value in fields.items()}
    )


@contextmanager
def database(*, migrated: bool = True) -> Iterator[Database]:
    """The platform's database, as the settings name it."""
    from formulacode_dagster.store.embedded import start_embedded

    store = Database(value_of("FC_DATABASE_URL") or start_embedded(home() / "postgres"))
    try:
        if migrated:
            store.migrate()
        yield store
    finally:
        store.close()


def read_funnel(store: Database, month: Month) -> Funnel:
    """The funnel of *month*, as the ledger and the books have it now."""
    with store.transaction() as connection:
        return count_funnel(month.key, ledger.entries_of(connection, month.key), usage_totals(connection, month.key))


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
            with Bars(console) as bars, listening(bars):
                result = run_month(instance, month, options, stages=stages)
            show_result(console, result, time.monotonic() - started)
            succeeded = succeeded and result.success
            if not stages and not options.dry_run:
                show_funnel(console, read_funnel(store, month))
    return succeeded


def show_result(console: Console, result: MonthResult, seconds: float) -> None:
    """One line when all went well; what failed, and every failed check, when not."""
    for check in result.failed_checks:
        console.print(f"[yellow]check failed:[/] {escape(check)}", highlight=False)
    for error in result.errors:
        console.print(f"[bold red]failed:[/] {escape(error)}", highlight=False)
    word = "[green]succeeded[/]" if result.success else "[bold red]failed[/]"
    console.print(f"{result.month} {word} in {seconds:.1f} s (run {result.run_id})", highlight=False)


def check_systems() -> list[Finding]:
    """Probe every outside system that the settings name."""
    return [probe("programs", programs), *(_check(name) for name in ("postgres", *_OUTSIDE))]


_OUTSIDE = ("github", "llm", "containers", "registry", "hub")


def _check(name: str) -> Finding:
    def ask() -> tuple[Health, str]:
        if name == "postgres":
            with database() as store:
                return Health.OK, f"{store.where} answers and is up to date"
        # whether GitHub is asked at all, intake knows
        healthy, text = resolved("intake" if name == "github" else name).preflight()
        return (Health.OK if healthy else Health.WARNING), text

    return probe(name, ask)
