"""`fc-data results`: runs of agents on a release, read into the database."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formulacode_dagster.models.errors import ConfigurationError

from ..console import complain, complaints, console

if TYPE_CHECKING:
    from formulacode_dagster.library import Dataset
    from formulacode_dagster.releasing.results.released import ReleasedTask

app = typer.Typer(help="Run agents on released tasks, and store what they achieve.", no_args_is_help=True)

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


def released_tasks(dataset: Dataset, release: str = "") -> list[ReleasedTask]:
    """Return the tasks of *dataset*, or of the month whose tag *release* is; raises ConfigurationError without any."""
    from formulacode_dagster.releasing.results.released import ReleasedTask

    tags = {month.month: month.tag for month in dataset.index.months if release in ("", month.tag)}
    if not tags:
        known = ", ".join(month.tag for month in dataset.index.months) or "none"
        raise ConfigurationError(f"{dataset.name} has no release {release}", remedy=f"Its newest ones are {known}")
    return [ReleasedTask(tags[task.row["month"]], task.row) for task in dataset.values() if task.row["month"] in tags]


@app.command()
def take(path: Recorded, dataset: From = None, revision: Revision = "") -> None:
    """Store the runs in PATH, each once, if they are of the release: same image, workloads, tests and grader.

    Others are listed with the reason. A run without a judgement, because a container, an endpoint or the grader failed,
    is stored as such and never counts.
    """
    import os

    from rich.markup import escape

    from formulacode_dagster.library import Dataset
    from formulacode_dagster.models.agent_run import RunState
    from formulacode_dagster.releasing.results.redaction import Redaction
    from formulacode_dagster.releasing.results.released import ReleasedTasks
    from formulacode_dagster.releasing.results.taking import take as take_runs
    from resources.hub import HubResource

    from ..operate import database

    loaded = Dataset.load(dataset, revision=revision)
    tasks = ReleasedTasks(loaded.name, released_tasks(loaded))
    cutoffs, redaction = HubResource().cutoffs(), Redaction(os.environ)
    with database() as store, complaints.status("reading runs") as status:

        def progress(line: str) -> None:
            status.update(f"reading runs: {escape(line)}")

        done = take_runs(store, path, tasks, redaction, progress, cutoffs=cutoffs)
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
