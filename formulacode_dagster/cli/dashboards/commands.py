"""The commands of `fc-data dashboards`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formulacode_dagster.cli.console import console, table_of
from formulacode_dagster.measuring.breakpoints.choices import MINIMUM_CHANGE, WITHIN, Method
from formulacode_dagster.models.errors import ConfigurationError

from .output import ORDERS, show_commits, show_replication, tell_site

if TYPE_CHECKING:
    import polars as pl

app = typer.Typer(
    help="Read published asv sites, and find the commits that made benchmarks faster.", no_args_is_help=True
)
Folder = Annotated[Path, typer.Argument(help="Folder of the tables.", file_okay=False)]


@app.command()
def sites() -> None:
    """List the dashboards that have a name."""
    from formulacode_dagster.sources.dashboards.sites import dashboards_by_name
    from resources.settings import read_settings

    table = table_of("name", "repository", "site", "raw results")
    for name, dashboard in dashboards_by_name(read_settings().home).items():
        table.add_row(name, dashboard.repository, dashboard.site, dashboard.results)
    console.print(table)


@app.command()
def add(
    url: Annotated[
        str, typer.Argument(help="Where its site is: https://…, or file://… for a folder; none: only raw results.")
    ] = "",
    name: Annotated[str, typer.Option(help="What to call it.", show_default="the last part of its address")] = "",
    results: Annotated[str, typer.Option(help="Folder of raw results of asv; FC_HOME/results/NAME by default.")] = "",
    repository: Annotated[str, typer.Option(help="owner/name of the benchmarked repository.")] = "",
) -> None:
    """Give a dashboard a name: a published site, raw results, or both."""
    from formulacode_dagster.sources.dashboards.sites import Dashboard, add_dashboard, name_for
    from resources.settings import make_home

    name = name or name_for(url or results)
    add_dashboard(make_home(), Dashboard(name=name, site=url, results=results, repository=repository))
    console.print(f"{name} is {url or results}", markup=False, highlight=False)


@app.command()
def scrape(
    site: Annotated[
        str, typer.Argument(help="Name or address of an asv site, or a folder: a clone of its gh-pages branch.")
    ],
    folder: Folder,
) -> None:
    """Write a site as Parquet. Over HTTP it is downloaded into the folder first, and only new files are requested."""
    from formulacode_dagster.sources.dashboards.scraping import scrape as scrape_site
    from formulacode_dagster.sources.dashboards.sites import dashboards_by_name
    from formulacode_dagster.sources.dashboards.tables import tables_of, write_tables
    from resources.settings import read_settings

    # an existing folder takes precedence, whatever its name
    if not Path(site).is_dir() and (named := dashboards_by_name(read_settings().home).get(site)):
        site = named.site
    with console.status(f"reading {site}"):
        scraped = scrape_site(site, folder)
    if fetched := scraped.download:
        console.print(
            f"{fetched.requests:,} requests: {fetched.fetched:,} files fetched, "
            f"{fetched.unchanged + fetched.kept:,} as before, {fetched.absent:,} that the site does not have"
        )
    read = scraped.site
    write_tables(tables_of(read), folder)
    tell_site(read, folder)


@app.command()
def steps(
    folder: Folder,
    method: Annotated[Method, typer.Option(help="How steps are found; `asv` and `rbf` need their libraries.")] = (
        Method.SEEDED
    ),
    minimum_change: Annotated[float, typer.Option(min=0.0, help="The smallest relative change to report.")] = (
        MINIMUM_CHANGE
    ),
) -> None:
    """Find the steps of the series that `scrape` wrote, and the commits that made them: tables, and a picture."""
    from formulacode_dagster.measuring.breakpoints.finding import find_breakpoints
    from formulacode_dagster.measuring.breakpoints.picture import draw_steps
    from formulacode_dagster.operating.files.atomic import disk_errors, write_atomically
    from formulacode_dagster.sources.dashboards.tables import write_tables

    points, series, revisions = (_table(folder, name) for name in ("points", "series", "revisions"))
    breakpoints = find_breakpoints(points, series, revisions, method, minimum_change)
    all_steps, commits = breakpoints.steps, breakpoints.commits
    write_tables({"steps": all_steps, "commits": commits}, folder)
    picture = folder / "steps.png"
    with disk_errors(str(picture)):
        write_atomically(picture, draw_steps(points, series, all_steps))
    console.print(f"{series.height:,} series, {all_steps.height:,} steps, {commits.height:,} commits, by {method}")
    show_commits(commits)
    console.print(f"steps.parquet, commits.parquet and steps.png are in {folder}", markup=False, highlight=False)


@app.command()
def collate(
    results: Annotated[Path, typer.Argument(help="Folder of raw results of asv.", exists=True, file_okay=False)],
    folder: Folder,
    repository: Annotated[str, typer.Option(help="owner/name: its mirror gives the order of the commits.")] = "",
) -> None:
    """Collate raw results into the tables that `scrape` writes, and into a site for asv's own front end."""
    from formulacode_dagster.sources.dashboards.raw_results import collate_folder
    from formulacode_dagster.sources.dashboards.scraping import SITE_FOLDER
    from formulacode_dagster.sources.dashboards.sites import Dashboard
    from formulacode_dagster.sources.dashboards.tables import tables_of, write_tables
    from resources.mirrors import MirrorsResource

    dashboard = Dashboard(name=results.absolute().name, results=str(results), repository=repository)
    mirror = MirrorsResource().cache().ensure(repository) if repository else None
    collated = collate_folder(dashboard, folder / SITE_FOLDER, mirror=mirror, published=None)
    write_tables(tables_of(collated.site), folder)
    tell_site(collated.site, folder)
    console.print(f"commits are ordered by {ORDERS[collated.order]}", highlight=False)
    console.print(
        f"The site is in {folder / SITE_FOLDER}: serve it by any static file server", markup=False, highlight=False
    )


@app.command()
def replicate(
    reference: Annotated[Path, typer.Argument(help="Folder of tables in which `steps` was run.", file_okay=False)],
    other: Annotated[Path, typer.Argument(help="Another one, of the same repository.", file_okay=False)],
    folder: Annotated[Path, typer.Argument(help="Path of the page to write.", file_okay=False)],
    within: Annotated[
        int, typer.Option(min=0, help="Commits between two breakpoints that are the same all the same.")
    ] = WITHIN,
) -> None:
    """Compare two sets of breakpoints: the common ones, the correlation of their steps, and their differences."""
    from formulacode_dagster.measuring.breakpoints.comparing import write_pages
    from formulacode_dagster.measuring.breakpoints.persistence import Breakpoints
    from formulacode_dagster.measuring.breakpoints.replication import BreakpointSet
    from formulacode_dagster.measuring.breakpoints.replication import replicate as compare

    mine, theirs = (
        BreakpointSet(
            str(place), Breakpoints(_table(place, "steps"), _table(place, "commits")), _table(place, "revisions")
        )
        for place in (reference, other)
    )
    compared = compare(mine, theirs, within)
    page = write_pages(folder, compared)
    show_replication(compared)
    console.print(f"The page is {page}", markup=False, highlight=False)


def _table(folder: Path, name: str) -> pl.DataFrame:
    import polars as pl

    path = folder / f"{name}.parquet"
    try:
        return pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise ConfigurationError(
            f"cannot read {path}", why=str(error), remedy=f"Write it first: fc-data dashboards scrape SITE {folder}"
        ) from error
