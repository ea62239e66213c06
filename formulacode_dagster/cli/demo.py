"""The demo: two months of the sample repositories, through the same assets, resources and checks as production."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from formulacode_dagster.models.errors import ConfigurationError, FormulaCodeError
from formulacode_dagster.models.image import EngineName
from formulacode_dagster.models.items import RunOptions
from formulacode_dagster.models.month import Month

from .console import complain, console

if TYPE_CHECKING:
    from formulacode_dagster.operating.store.database import Database
    from sandbox.session import Sandbox

DEMO_MONTHS = ("2026-01", "2026-02")
SHOWCASE, SITE = "demo", "site"
EXAMPLE = "sample-org/gridpath#12"
AGENTS = ("oracle", "nop")
"""Scripted agents, whose runs the site shows."""
GRADED = {"2026-01": "sample-org/gridpath#5", "2026-02": EXAMPLE}
"""The task of each month that they work on: one is graded for half a minute."""


def demo() -> None:
    """Materialize 2026-01 and 2026-02 of the sample repositories, through the sandbox."""
    from formulacode_dagster.operating.store.artifacts import AGENT_RUNS
    from formulacode_dagster.operating.store.ledger import finished_since
    from formulacode_dagster.orchestration.runs import dagster_instance
    from formulacode_dagster.sources.github.transport.addresses import LOCAL
    from resources.containers import ContainersResource
    from resources.settings import make_home
    from sandbox.samples import generate
    from sandbox.samples.catalog import repositories as sample_repositories
    from sandbox.session import running_sandbox

    from .operate import database, require_own_months, run_months

    started, began_at = time.monotonic(), datetime.now(tz=UTC)
    home = make_home()
    state = home / "sandbox"
    repositories = state / "repositories"
    with database() as store:
        require_own_months(store, LOCAL, [sample.name for sample in sample_repositories()])
        with console.status("generating the sample repositories"):
            samples = generate(repositories)
        console.print(f"{len(samples.heads)} sample repositories in {repositories}", highlight=False)
        with running_sandbox(repositories, state, samples=True) as sandbox:
            os.environ.update(sandbox.environment)
            for service, url in sandbox.urls.items():
                console.print(f"sandbox {service}: {url}", highlight=False)
            engine, why = ContainersResource().chosen()
            console.print(f"engine: {why}", highlight=False)
            with dagster_instance() as instance:
                succeeded = run_months(console, instance, [Month.parse(key) for key in DEMO_MONTHS], RunOptions())
                with store.transaction() as connection:
                    worked = finished_since(connection, began_at)
                graded = run_agents(store) if succeeded and engine.name is EngineName.DOCKER else 0
                results: Path | None = home / SHOWCASE
                if worked or graded or not all((home / folder).exists() for folder in (SHOWCASE, SITE)):
                    with console.status("writing the results"):
                        results = write_showcase(home, DEMO_MONTHS)
                with store.transaction() as connection:
                    runs = sum(len(AGENT_RUNS.read(connection, key)) for key in DEMO_MONTHS)
            _close(sandbox, home, results, worked, time.monotonic() - started)
            if results is not None:
                _name_agents(runs, engine.name, home)
    raise typer.Exit(0 if succeeded else 1)


def run_agents(store: Database) -> int:
    """Let each scripted agent without a stored run in a month work on that month's task, which is graded.

    Return the number of new runs. A run that fails is reported, and is no failure of the demo.
    """
    from formulacode_dagster.operating.store.artifacts import AGENT_RUNS

    from .exports.agents import run

    def agents_of(month: str) -> list[str]:
        with store.transaction() as connection:
            return [each.agent for each in AGENT_RUNS.read(connection, month)]

    before = sum(len(agents_of(month)) for month in GRADED)
    for month, item in GRADED.items():
        tag = Month.parse(month).release
        for agent in sorted(set(AGENTS) - set(agents_of(month)), key=AGENTS.index):
            console.print(f"$ {command_of(tag, agent, item)}", highlight=False, markup=False, soft_wrap=True)
            try:
                with console.status("grading, for about half a minute"):
                    run(tag, agent, attempts=1, only=[item])
            except FormulaCodeError as error:
                complain(str(error))
    return sum(len(agents_of(month)) for month in GRADED) - before


def command_of(tag: str, agent: str, item: str) -> str:
    """Return the command by which *agent* works on *item* of the release *tag*."""
    return f".venv/bin/fc-data results run --release {tag} --agent {agent} --attempts 1 --only {item}"


def write_showcase(home: Path, months: Sequence[str]) -> Path | None:
    """Write the dataset of the settings' Hub and the reports of *months* to `demo/` of *home*, in place of earlier
    ones, and the site, with the runs of agents that are stored, to `site/`. Return None if no month is released.
    """
    from formulacode_dagster.library import Dataset
    from formulacode_dagster.releasing.dataset.hub_client import hub_api, hub_errors
    from resources.destination import hub_token
    from resources.settings import read_settings

    from .site import site

    settings, folder = read_settings(), home / SHOWCASE
    try:
        Dataset.load()
    except ConfigurationError:
        return None
    shutil.rmtree(folder, ignore_errors=True)
    token = hub_token(settings)
    with hub_errors("read the dataset", token):
        hub_api(settings.hf_endpoint, token).snapshot_download(
            settings.hf_dataset, repo_type="dataset", local_dir=folder / "dataset"
        )
    shutil.rmtree(folder / "dataset" / ".cache", ignore_errors=True)
    site(home / SITE, str(folder / "dataset"), results=True)
    (folder / "reports").mkdir()
    for key in months:
        if (report := home / "reports" / f"{key}.html").exists():
            shutil.copy(report, folder / "reports")
    return folder


def _close(sandbox: Sandbox, home: Path, results: Path | None, worked: int, seconds: float) -> None:
    calls = sandbox.calls()
    console.rule("[bold]done")
    if worked == 0 and calls["github"] == 0 and calls["model"] == 0:
        console.print("Everything is up to date: no GitHub call, no model call, no build.")
    else:
        console.print(
            "Requests answered by the sandbox: " + ", ".join(f"{service} {count}" for service, count in calls.items()),
            highlight=False,
        )
    console.print(f"{seconds:.1f} s in all", highlight=False)
    console.print("Where to look next:")
    console.print("  make dev                          the Dagster UI with these months, checks and plots")
    if results is None:
        for key in DEMO_MONTHS:
            console.print(f"  {home / 'reports' / f'{key}.html'}", highlight=False)
    else:
        console.print(f"  {home / SITE / 'index.html'}   the tasks as pages", highlight=False)
        console.print(f"  {results / 'dataset'}   the release as Parquet", highlight=False)
        console.print(f"  {results / 'reports'}   the months' reports", highlight=False)
    console.print("  .venv/bin/fc-data funnel --month 2026-02        the funnel again", highlight=False)
    console.print(f"  .venv/bin/fc-data why {EXAMPLE}   the whole story of one pull request", highlight=False)


def _name_agents(runs: int, engine: EngineName, home: Path) -> None:
    """Say whether the site has runs of agents, and how it gets some."""
    site = home / SITE
    if runs:
        console.print(f"  {site / 'results.html'}   {runs} runs of agents on these tasks", highlight=False)
    elif engine is not EngineName.DOCKER:
        console.print("The site has no runs of agents: tasks that were built without Docker cannot be run elsewhere.")
        other = f"{home}-docker"
        console.print(
            f"With a Docker daemon, this adds some: FC_ENGINE=docker FC_HOME={other} make demo", highlight=False
        )
    else:
        console.print("The site has no runs of agents, since none could be graded. To add some:")
        for agent in AGENTS:
            console.print(f"  {command_of('formulacode@2026-03', agent, EXAMPLE)}", highlight=False, soft_wrap=True)
        console.print(f"  .venv/bin/fc-data site {site} --results", highlight=False, soft_wrap=True)
