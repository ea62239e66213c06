"""`fc-data replay`: measures a released month again, only from the dataset and the published images."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.items import RunOptions, Stage

from .console import console, table_of
from .run import DryRun, Only

if TYPE_CHECKING:
    from formulacode_dagster.models.month import Month

Again = Annotated[
    bool, typer.Option("--resume/--force", help="Replay only tasks not replayed here yet, or every task.")
]
DockerHost = Annotated[
    str | None, typer.Option(help="Docker daemon to measure with, on any machine.", show_default="DOCKER_HOST")
]


def replay(
    month: Annotated[str, typer.Option("--month", help="Month, YYYY-MM; its newest release is replayed.")],
    docker_host: DockerHost = None,
    only: Only = None,
    resume: Again = True,
    dry_run: DryRun = False,
) -> None:
    """Measure a released month again, only from dataset and images; status 1 if too many tasks could not be run."""
    from formulacode_dagster.orchestration.runs import dagster_instance

    from .operate import months_of, run_months

    if docker_host is not None:
        os.environ["DOCKER_HOST"] = docker_host
    months = months_of(month, None, None)
    names = tuple(str(ItemName.parse(text)) for text in only or ())
    options = RunOptions(only=names, force=not resume, dry_run=dry_run)
    with dagster_instance() as instance:
        succeeded = run_months(console, instance, months, options, stages=(Stage.REPLAYS,))
    _show(months[0])
    raise typer.Exit(0 if succeeded else 1)


def _show(month: Month) -> None:
    """Every replay of the month that this database knows, a line each."""
    from formulacode_dagster.operating.store.measurements import replays_of

    from .operate import database

    with database() as store, store.transaction() as connection:
        by_task = replays_of(connection, month.key)
    if not by_task:
        return
    table = table_of("task", "replay", "verdict", "speed-up", "95 %", "machine or reason", title="Replays")
    for task_id, made in by_task.items():
        for replayed in made:
            taken = replayed.measurement
            table.add_row(
                task_id,
                str(replayed.attempt),
                replayed.verdict.value,
                taken.speedup_text if taken else "",
                f"{taken.low:.2f} to {taken.high:.2f}" if taken else "",
                replayed.failure.value if replayed.failure else taken.machine if taken else "",
            )
    console.print(table)
