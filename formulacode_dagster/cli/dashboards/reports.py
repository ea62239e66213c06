"""`fc-data dashboards reports`: a page for each of the commits at which most benchmarks got faster."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formulacode_dagster.cli.console import console
from formulacode_dagster.measuring.breakpoints.choices import Method
from formulacode_dagster.operating.store.series.source import Source

if TYPE_CHECKING:
    import polars as pl


def reports(
    name: Annotated[str, typer.Argument(help="Name of a dashboard whose breakpoints are kept.")],
    folder: Annotated[Path, typer.Argument(help="Folder of the pages.", file_okay=False)],
    limit: Annotated[int, typer.Option(min=1, help="At most so many commits, the most improving ones.")] = 20,
    source: Annotated[Source, typer.Option(help="Which of its series.")] = Source.PUBLISHED,
    method: Annotated[Method, typer.Option(help="How the steps were found.")] = Method.SEEDED,
    coverage: Annotated[
        bool, typer.Option("--coverage", help="Ask Codecov for the coverage of changed files.")
    ] = False,
) -> None:
    """Write a page for each of the commits at which most benchmarks got faster: Markdown, with pictures."""
    from formulacode_dagster.cli.operate import database
    from formulacode_dagster.measuring.breakpoints.candidates import repository_of
    from formulacode_dagster.models.items import Stage
    from formulacode_dagster.operating.cancellation.loops import run_loop
    from formulacode_dagster.releasing.commit_reports.gathering import Steps, write_reports
    from resources.codecov import CodecovResource
    from resources.github import GitHubResource
    from resources.mirrors import MirrorsResource

    with database() as store:
        with store.transaction() as connection:
            repository = repository_of(connection, name, source)
        steps = Steps.load(store, name, repository, source, method)
    github = GitHubResource()

    async def write() -> pl.DataFrame:
        async with AsyncExitStack() as stack:
            has_token = bool(github.settings.github_tokens)
            return await write_reports(
                steps,
                MirrorsResource().cache(),
                folder,
                limit=limit,
                codecov=await stack.enter_async_context(CodecovResource().client()) if coverage else None,
                github=await stack.enter_async_context(github.client(Stage.PROBLEM_STATEMENTS)) if has_token else None,
            )

    with console.status(f"reporting on {repository}"):
        written = run_loop(write())
    pages = written.filter(written["tokens"] > 0)
    console.print(f"{pages.height} pages of about {pages['tokens'].sum():,} tokens are in {folder}", markup=False)
    if pages.height < written.height:
        console.print(f"{written.height - pages.height} commits are not in the repository; see reports.parquet")
