"""`fc-data results`: runs of agents on a release, read into the database."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from formulacode_dagster.models.errors import ConfigurationError

from ..console import complain, complaints, console

app = typer.Typer(help="Read runs of agents on released tasks, and sum them.", no_args_is_help=True)

Recorded = Annotated[
    Path,
    typer.Argument(
        help="A job or a folder of jobs of Harbor, runs of `fc-data evaluate --keep`, or a run of fc-eval or "
        "terminal-bench."
    ),
]
From = Annotated[
    str | None, typer.Option("--from", help="Folder of a dataset, or owner/name on the Hub.", show_default="settings'")
]
Revision = Annotated[
    str, typer.Option(help="Tag that the tasks were exported from, as formulacode@2026-03.", show_default="the newest")
]


@app.command()
def take(path: Recorded, dataset: From = None, revision: Revision = "") -> None:
    """Store the runs in PATH, each once, if they are of the release: same image, workloads, tests and grader.

    Others are listed with the reason. A run without a judgement, because a container, an endpoint or the grader failed,
    is stored as such and never counts.
    """
    import os

    from formulacode_dagster.library import Dataset
    from formulacode_dagster.models.agent_run import RunState
    from formulacode_dagster.releasing.results.redaction import Redaction
    from formulacode_dagster.releasing.results.released import ReleasedTask, ReleasedTasks
    from formulacode_dagster.releasing.results.taking import take as take_runs

    from ..operate import database

    loaded = Dataset.load(dataset, revision=revision)
    tags = {month.month: month.tag for month in loaded.index.months}
    rows = [task.row for task in loaded.values()]
    tasks = ReleasedTasks(loaded.name, (ReleasedTask(tags[row["month"]], row) for row in rows))
    with database() as store, complaints.status("reading runs") as status:
        done = take_runs(store, path, tasks, Redaction(os.environ), lambda line: status.update(f"reading runs: {line}"))
    for line in done.refused:
        complain(line)
    states = Counter(run.state for run in done.taken)
    console.print(
        f"{states[RunState.GRADED]} runs taken, {states[RunState.INFRASTRUCTURE]} failures of infrastructure, "
        f"{done.known} known before, {len(done.refused)} refused",
        highlight=False,
    )
    if done.refused and not done.taken and not done.known:
        raise ConfigurationError("no run was taken", remedy="See the lines above")
