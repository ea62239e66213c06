"""`fc-data operations`: pending work, spending, free disk space."""

from __future__ import annotations

from formulacode_dagster.cli.console import console, table_of


def operations() -> None:
    """Show work that waits, spending against budgets, disks, mirrors and the newest backup."""
    from formulacode_dagster.cli.operate import database
    from formulacode_dagster.operating.monitoring.operations import amount
    from formulacode_dagster.orchestration.operations import runs_now
    from formulacode_dagster.orchestration.runs import dagster_instance
    from resources.watching import operations_now

    with database() as store, dagster_instance() as instance:
        now = operations_now(store, runs_now(instance))
    runs = now.runs
    items = ", ".join(f"{state} {count:,}" for state, count in now.items.items())
    lines = [
        f"runs: queued {runs.queued}, under way {runs.under_way}, failed within a day {runs.failed}",
        *(f"shared: {queue.stage} of {queue.month}, free items {queue.free:,}" for queue in now.queues),
        f"items: {items}",
        "mirrors: none"
        if now.mirrors_unused_days is None
        else f"mirrors: {now.mirrors}, one unused for {now.mirrors_unused_days:.1f} days",
        "backups: none" if now.backup_hours is None else f"newest backup: {now.backup_hours:.1f} hours old",
    ]
    for line in lines:
        console.print(line, markup=False, highlight=False)
    table = table_of("what", "used", "limit")
    for use in (*now.budgets, *now.disks):
        limit = "none" if use.limit is None else f"{amount(use.limit, use.unit)} ({use.share:.0%})"
        table.add_row(use.what, amount(use.used, use.unit), limit)
    console.print(table)
