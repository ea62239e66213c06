"""`fc-data`: every command calls the same functions as the assets. Heavy imports happen in the commands."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated

import typer

from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.operating.cancellation.stopping import Stopped, interrupted_once, signals_heard

from . import (
    accept,
    assist,
    demo,
    dev,
    funnel,
    preflight,
    rebuild,
    run,
    sandbox,
    show,
    site,
    verify,
    why,
)
from .console import complain, complaints, console
from .dashboards.benchmark import benchmark
from .dashboards.candidates import candidates
from .dashboards.commands import app as dashboards_app
from .dashboards.reports import reports
from .dashboards.tune import tune
from .exports.agents import judge, regrade
from .exports.agents import run as run_agent
from .exports.commands import evaluate, export
from .exports.results import app as results_app
from .items.profile import profile
from .items.review import review
from .offline import app as offline_app
from .release import app as release_app
from .replay import app as replay_app
from .repositories import app as repositories_app
from .sandbox import with_demo_services
from .synthesis.contexts import app as contexts_app
from .synthesis.synthesize import synthesize
from .upkeep import backup, housekeeping, metrics, migrate, mirrors, operations, pools

GARBAGE_THRESHOLDS = (100_000, 20, 20)
"""Dagster's imports produce nearly no garbage; the default collection frequency costs a second."""

app = typer.Typer(
    help="Builds performance-optimisation benchmarks from GitHub, month by month. Dagster runs it; the UI shows it.",
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
RENAMED_OPTIONS = {
    "--max-concurrency": "--concurrency",
    "--n-concurrent": "--concurrency",
    "--tasks-per-repo": "--limit-per-repository",
}
"""Current name of each option by its former one, or by that of the predecessor, which is still accepted."""
OPTIONS_OF_RUN = frozenset({"--month", "--start-date", "--end-date"})
"""Options that may stand first, without `run`, as the predecessor's command line has them."""
ONLY_READ = frozenset({"funnel", "metrics", "operations", "plan", "preflight", "sandbox", "show", "tune", "why", "dev"})
"""Commands that leave nothing to continue."""
INTERRUPTED = 130
"""Typer's exit status for a KeyboardInterrupt, from any signal."""
PATIENCE_SECONDS = 8.0
"""Seconds for a command to clean up after Ctrl-C or SIGTERM."""


class Group(StrEnum):
    """The groups under which `fc-data --help` lists the commands."""

    MONTHS = "Months"
    ITEMS = "One pull request, or one repository"
    DASHBOARDS = "Published benchmarks"
    UPKEEP = "Upkeep"
    TRYING = "Trying it out"


_COMMANDS: dict[Group, tuple[Callable[..., None], ...]] = {
    Group.MONTHS: (
        run.run,
        assist.assist,
        funnel.funnel,
        funnel.plan,
        site.site,
        export,
        accept.accept,
        preflight.preflight,
    ),
    Group.ITEMS: (why.why, show.show, review, rebuild.rebuild, profile, verify.verify, evaluate, synthesize),
    Group.DASHBOARDS: (benchmark, tune),
    Group.UPKEEP: (
        operations.operations,
        metrics.metrics,
        housekeeping.housekeeping,
        backup.backup,
        backup.restore,
        mirrors.mirrors,
        migrate.migrate,
        pools.pools,
    ),
    Group.TRYING: (demo.demo, dev.dev, sandbox.sandbox),
}
_USE_OUTSIDE_SYSTEMS = {
    *(run.run, site.site, export, preflight.preflight),
    *(review, rebuild.rebuild, profile, evaluate, synthesize),
}
for _group, _commands in _COMMANDS.items():
    for _command in _commands:
        _called = with_demo_services(_command) if _command in _USE_OUTSIDE_SYSTEMS else _command
        app.command(rich_help_panel=_group)(_called)
app.add_typer(repositories_app, name="repositories", rich_help_panel=Group.ITEMS)
app.add_typer(contexts_app, name="contexts", rich_help_panel=Group.ITEMS)
dashboards_app.command()(candidates)
dashboards_app.command()(reports)
app.add_typer(dashboards_app, name="dashboards", rich_help_panel=Group.DASHBOARDS)
app.add_typer(offline_app, name="offline", rich_help_panel=Group.MONTHS)
app.add_typer(release_app, name="release", rich_help_panel=Group.MONTHS)
app.add_typer(replay_app, name="replay", rich_help_panel=Group.MONTHS)
results_app.command("run")(with_demo_services(run_agent))
results_app.command()(with_demo_services(regrade))
results_app.command()(with_demo_services(judge))
app.add_typer(results_app, name="results", rich_help_panel=Group.MONTHS)


def _show_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        console.print(f"fc-data {version('formulacode-dagster')}", highlight=False)
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and end.", callback=_show_version, is_eager=True)
    ] = False,
) -> None:
    """Builds performance-optimisation benchmarks from GitHub, month by month. Dagster runs it; the UI shows it."""


def current_options(arguments: list[str]) -> list[str]:
    """Return *arguments* with RENAMED_OPTIONS under their current names, and with `run` where it is left out.

    Each is warned about. What follows `--` belongs to another program.
    """
    current = []
    if arguments and arguments[0].partition("=")[0] in OPTIONS_OF_RUN:
        complaints.print("`fc-data` without a command is now `fc-data run`", style="yellow", highlight=False)
        current.append("run")
    for position, argument in enumerate(arguments):
        if argument == "--":
            return [*current, *arguments[position:]]
        name, equals, value = argument.partition("=")
        if name in RENAMED_OPTIONS:
            complaints.print(f"{name} is now called {RENAMED_OPTIONS[name]}", style="yellow", highlight=False)
        current.append(RENAMED_OPTIONS.get(name, name) + equals + value)
    return current


def main() -> None:
    """Run `fc-data`; a known error, or no to a question, is one message and status 1, never a traceback."""
    from typer.exceptions import TyperException

    from resources.environment import prepare_environment

    gc.set_threshold(*GARBAGE_THRESHOLDS)
    status: int | None = 1
    is_declined = False
    try:
        # a polite kill ends the way Ctrl-C does: the run is marked, the sandbox and the embedded server are stopped
        with signals_heard(patience=PATIENCE_SECONDS) as request, interrupted_once(KeyboardInterrupt):
            request.at_last(tell_interrupted)
            prepare_environment()
            status = app(current_options(sys.argv[1:]) or ["--help"], standalone_mode=False)
    except FormulaCodeError as error:
        complain(str(error))
    except TyperException as error:
        context = getattr(error, "ctx", None)
        what = error.format_message().replace("Value error, ", "").rstrip(".")
        end = "" if what.endswith("?") else "."
        complain(f"{what}{end} See `{context.command_path if context else 'fc-data'} --help`")
    except typer.Abort:
        is_declined = True
    except (KeyboardInterrupt, Stopped):
        status = INTERRUPTED
    if is_declined:
        # Ctrl-C leaves the cursor behind the question
        complaints.print("\nnothing was run" if request.requested else "nothing was run")
        status = request.exit_status if request.requested else 1
    elif status == INTERRUPTED:
        status = request.exit_status
        tell_interrupted()
    # the interpreter would look for garbage in all that Dagster has loaded, for a second or more
    gc.freeze()
    sys.exit(status or 0)


def tell_interrupted() -> None:
    """Say so on standard error, and how to continue unless the command only reads."""
    only_read = any(argument in ONLY_READ for argument in sys.argv[1:2])
    complaints.print("interrupted" if only_read else "interrupted; run the same command again to continue")
