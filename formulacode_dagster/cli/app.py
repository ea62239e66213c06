"""`fc-data`: every command calls what the assets call. Heavy imports happen in the commands."""

from __future__ import annotations

import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from formulacode_dagster.models.errors import ConfigurationError, FormulaCodeError
from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.items import RunOptions, Stage
from formulacode_dagster.models.month import Month

from .offline import commands as offline_commands
from .repositories import commands as repository_commands

app = typer.Typer(
    help="Builds performance-optimisation benchmarks from GitHub, month by month. Dagster runs it; the UI shows it.",
    pretty_exceptions_enable=False,
    add_completion=False,
)
WIDTH_IN_LOGS = 140
console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else WIDTH_IN_LOGS)
complaints = Console(stderr=True, soft_wrap=True)
INTERRUPTED = 130
"""Exit status after Ctrl-C or a polite kill, as shells have it."""


app.add_typer(repository_commands(console), name="repositories")
app.add_typer(offline_commands(console), name="offline")


def main() -> None:
    """Run `fc-data`; a known error is one message and status 1, never a traceback."""
    from typer.exceptions import TyperException

    from resources.settings import load_env_file

    # a polite kill ends the way Ctrl-C does: the run is marked, the sandbox and the embedded server are stopped
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    status: int | None = 1
    try:
        load_env_file()
        status = app(sys.argv[1:] or ["--help"], standalone_mode=False)
    except FormulaCodeError as error:
        _complain(str(error))
    except TyperException as error:
        context = getattr(error, "ctx", None)
        what = error.format_message().replace("Value error, ", "").rstrip(".")
        _complain(f"{what}. See `{context.command_path if context else 'fc-data'} --help`")
    except KeyboardInterrupt:
        status = INTERRUPTED
    if status == INTERRUPTED:
        complaints.print("interrupted; run the same command again, it goes on where this one stopped")
    sys.exit(status or 0)


def _complain(text: str) -> None:
    # a message may quote what the user typed, square brackets included: it is no markup
    complaints.print(f"[bold red]error:[/] {escape(text)}", highlight=False)


MonthOption = Annotated[str | None, typer.Option("--month", help="Month to work on, YYYY-MM; or give both dates.")]


@app.command()
def run(
    month: MonthOption = None,
    start_date: Annotated[str | None, typer.Option(help="First day, YYYY-MM-DD; the first of a month.")] = None,
    end_date: Annotated[str | None, typer.Option(help="Day after the last, YYYY-MM-DD; the first of a month.")] = None,
    stage: Annotated[
        Stage | None, typer.Option(help="Only this asset, with its checks.", show_default="all of them")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume/--force", help="Do what is not done yet, or everything again.")
    ] = True,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, do nothing.", show_default="no")
    ] = False,
    only: Annotated[
        list[str] | None,
        typer.Option(help="owner/repo or owner/repo#123; may be repeated.", show_default="everything"),
    ] = None,
    limit_per_repository: Annotated[
        int | None, typer.Option(min=1, help="At most so many pull requests of a repository.", show_default="no limit")
    ] = None,
    max_concurrency: Annotated[int, typer.Option(min=1, help="Items worked on at the same time.")] = 8,
    offline_source: Annotated[
        str | None,
        typer.Option(
            help="Files, or a folder of files or mirrors, to take in instead of asking GitHub.",
            show_default="FC_OFFLINE_SOURCE",
        ),
    ] = None,
) -> None:
    """Materialize one month or several, with every gate on the way."""
    from formulacode_dagster.orchestration.runs import dagster_instance

    from .offline import use_offline_source
    from .operate import run_months

    months = _months(month, start_date, end_date)
    options = RunOptions(
        only=tuple(str(ItemName.parse(text)) for text in only or ()),
        limit_per_repository=limit_per_repository,
        max_concurrency=max_concurrency,
        force=not resume,
        dry_run=dry_run,
    )
    if offline_source is not None:
        use_offline_source(console, offline_source)
    with dagster_instance() as instance:
        succeeded = run_months(console, instance, months, options, stages=(stage,) if stage else ())
    raise typer.Exit(0 if succeeded else 1)


@app.command()
def funnel(month: Annotated[str, typer.Option("--month", help="Month, YYYY-MM.")]) -> None:
    """Show how many items came in, how many went out, and why the others did not."""
    from .operate import database, read_funnel
    from .terminal import show_funnel

    with database() as store:
        found = read_funnel(store, Month.parse(month))
    if found.is_empty:
        raise ConfigurationError(f"nothing is known of {month}", remedy=f"Run it first: fc-data run --month {month}")
    show_funnel(console, found)


@app.command()
def why(
    item: Annotated[str, typer.Argument(help="owner/repo#123, or owner/repo.")],
    log: Annotated[
        Stage | None, typer.Option(help="Print the whole newest log of this stage too.", show_default="no log")
    ] = None,
    attempt: Annotated[
        int | None, typer.Option(help="Print the whole log of this attempt at the image too.", show_default="no log")
    ] = None,
) -> None:
    """Tell an item's whole story: every stage, state, reason, error, cost, and every attempt at its image."""
    from formulacode_dagster.store import ledger
    from formulacode_dagster.store.blobs import get_log

    from .attempts import show_attempts, show_log
    from .operate import database
    from .terminal import plain, show_story

    name = str(ItemName.parse(item))
    with database() as store, store.transaction() as connection:
        story = ledger.story(connection, name)
        if not story:
            raise ConfigurationError(
                f"nothing is known of {name}", remedy="Run its month first; `fc-data funnel --month` lists examples"
            )
        show_story(console, name, story)
        show_attempts(console, connection, ItemName.parse(item))
        if attempt is not None:
            show_log(console, connection, ItemName.parse(item), attempt)
        if log is not None:
            text = get_log(connection, stage=log, month=story[-1].month, item=name)
            console.print(plain(text) or f"no log of {log} was kept", markup=False, highlight=False)


@app.command()
def preflight() -> None:
    """Check that every outside system answers, and with which rights; status 1 when one is broken."""
    from .operate import check_systems
    from .preflight import Health
    from .terminal import show_findings

    findings = check_systems()
    show_findings(console, findings)
    raise typer.Exit(1 if any(one.health is Health.BROKEN for one in findings) else 0)


@app.command()
def migrate() -> None:
    """Bring the database up to date."""
    from .operate import database

    with database(migrated=False) as store:
        applied = store.migrate()
        console.print(f"applied {', '.join(applied)}" if applied else f"{store.where} is up to date", highlight=False)


@app.command()
def pools() -> None:
    """Set the limits of Dagster's pools, which dagster.yaml cannot hold."""
    from formulacode_dagster.orchestration.home import POOLS
    from formulacode_dagster.orchestration.runs import dagster_instance, set_pools

    with dagster_instance() as instance:
        changed = set_pools(instance)
    for name, limit in POOLS.items():
        console.print(f"{name}: {limit}{' (set now)' if name in changed else ''}")


@app.command()
def mirrors(
    evict: Annotated[
        list[str] | None,
        typer.Option(help="owner/repo, whose mirror is removed; may be repeated.", show_default="list them"),
    ] = None,
) -> None:
    """List the mirrors on this machine: size, last use, state; or remove some."""
    from .mirrors import show_or_evict

    show_or_evict(console, evict or ())


@app.command()
def housekeeping(
    remove: Annotated[bool, typer.Option("--remove", help="Do it.", show_default="only say what would go")] = False,
) -> None:
    """Remove what dead runs left, images over FC_IMAGES_GB, and build cache over FC_BUILD_CACHE_GB."""
    from .housekeeping import tidy_up

    tidy_up(console, remove=remove)


@app.command()
def rebuild(item: Annotated[str, typer.Argument(help="owner/repo#123.")]) -> None:
    """Build an image again from spec and locks alone, and compare every installed file; status 1 when one differs."""
    from .rebuild import rebuild_and_compare

    raise typer.Exit(0 if rebuild_and_compare(console, item) else 1)


@app.command()
def verify(
    task: Annotated[
        Path, typer.Option(help="Folder of one task: task.toml, with the image's name in it or a Dockerfile beside it.")
    ],
) -> None:
    """Ask every gate of one task's image; writes verification_success.json or failure.json; status 1 if one fails."""
    from .verify import verify_task

    raise typer.Exit(0 if verify_task(console, task) else 1)


@app.command()
def sandbox(
    repositories: Annotated[
        Path | None, typer.Option(help="Folder of bare repositories owner/name.git.", show_default="the samples")
    ] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65532, help="First of four ports; 0: those of the last time, or free ones.")
    ] = 0,
) -> None:
    """Serve a GitHub, a model, a Hub and a registry on localhost until interrupted."""
    from sandbox.session import serve_until_interrupted

    serve_until_interrupted(console, repositories, port)


@app.command()
def demo() -> None:
    """Materialize 2026-01 and 2026-02 of the sample repositories, through the sandbox."""
    from .demo import run_demo

    raise typer.Exit(0 if run_demo(console) else 1)


@app.command()
def dev(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the UI.")] = 3000,
) -> None:
    """Serve the Dagster UI and its daemon over the same instance; with the sandbox where the demo was run."""
    from .serve import serve_ui

    raise typer.Exit(serve_ui(console, host, port))


def _months(month: str | None, start_date: str | None, end_date: str | None) -> list[Month]:
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
        raise ConfigurationError(f"{start_date} to {end_date} holds no month", remedy="Put the end after the start")
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
