"""`fc-data site`: a release as static pages that people can look at."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .console import console

if TYPE_CHECKING:
    from formulacode_dagster.library.site.results_page import SiteResults
    from formulacode_dagster.models.agent_run import AgentRun

Folder = Annotated[Path, typer.Argument(help="Folder to write into; empty, or a site to overwrite.")]
From = Annotated[
    str | None, typer.Option("--from", help="Folder of a dataset, or owner/name on the Hub.", show_default="settings'")
]
Months = Annotated[
    list[str] | None, typer.Option("--month", help="Month, YYYY-MM; may be repeated.", show_default="all")
]
Revision = Annotated[str, typer.Option(help="Tag to show, as formulacode@2026-03.", show_default="the newest")]

Space = Annotated[str, typer.Option(help="Static Space of the Hub, owner/name, to put it into.", show_default="none")]

Url = Annotated[
    str, typer.Option(help="Address at which the site will be, for the picture of its links.", show_default="relative")
]
Results = Annotated[
    bool,
    typer.Option(
        "--results",
        help="Add runs of agents, reviews and funnels from the database: pages compare agents.",
        show_default="without",
    ),
]


def site(
    folder: Folder,
    dataset: From = None,
    month: Months = None,
    revision: Revision = "",
    space: Space = "",
    results: Results = False,
    url: Url = "",
) -> None:
    """Write the tasks of the dataset as static pages: no server is needed, open index.html."""
    from formulacode_dagster.library import Dataset
    from formulacode_dagster.library.site.build import write_site
    from formulacode_dagster.library.site.space import publish_space
    from resources.settings import read_settings

    settings = read_settings()
    loaded = Dataset.load(dataset, revision=revision)
    with _results([each.month for each in loaded.index.months]) if results else nullcontext() as told:
        written = write_site(loaded, folder, month or (), told, url, web=settings.github_web)
    console.print(f"{written.tasks} tasks of {written.months} months: {written.index}", highlight=False, soft_wrap=True)
    if written.left_out:
        why = "the dataset lacks their tasks, or has them with another image or statement"
        console.print(f"{written.left_out} runs of agents are left out: {why}", highlight=False, soft_wrap=True)
    if space:
        console.print(publish_space(folder, space, settings), highlight=False, soft_wrap=True)


@contextmanager
def _results(months: list[str]) -> Iterator[SiteResults]:
    """What the database has on *months*; it stays open for the runs' files."""
    from formulacode_dagster.library.site.results_page import SiteResults
    from formulacode_dagster.library.site.run_page import RunFiles
    from formulacode_dagster.models.month import Month
    from formulacode_dagster.operating.store.acceptances import reviews_of
    from formulacode_dagster.operating.store.artifacts import AGENT_RUNS, TRAJECTORIES
    from formulacode_dagster.operating.store.blobs import get_blob

    from .operate import database, read_funnel

    with database() as store:
        with store.transaction() as connection:
            runs = [run for month in months for run in AGENT_RUNS.read(connection, month)]
            reviews = {task: said for month in months for task, said in reviews_of(connection, month).items()}
            steps = {row.run_id: row.sha256 for month in months for row in TRAJECTORIES.read(connection, month)}
        funnels = {month: read_funnel(store, Month.parse(month)) for month in months}

        def read_run(run: AgentRun) -> RunFiles:
            with store.transaction() as connection:
                keys = (run.diff_sha256, steps.get(run.run_id, ""))
                changes, trajectory = (
                    get_blob(connection, key).decode(errors="replace") if key else "" for key in keys
                )
            return RunFiles(changes, trajectory)

        known = {month: funnel for month, funnel in funnels.items() if not funnel.is_empty}
        yield SiteResults(runs, reviews, known, read_run)
