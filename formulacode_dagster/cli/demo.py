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

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.items import RunOptions
from formulacode_dagster.models.month import Month

from .console import console

if TYPE_CHECKING:
    from sandbox.session import Sandbox

DEMO_MONTHS = ("2026-01", "2026-02")
RESULTS = "results"
EXAMPLE = "sample-org/gridpath#12"


def demo() -> None:
    """Materialize 2026-01 and 2026-02 of the sample repositories, through the sandbox."""
    from formulacode_dagster.operating.store.ledger import finished_since
    from formulacode_dagster.orchestration.runs import dagster_instance
    from resources.containers import ContainersResource
    from resources.settings import make_home
    from sandbox.samples import generate
    from sandbox.session import running_sandbox

    from .operate import database, run_months

    started, began_at = time.monotonic(), datetime.now(tz=UTC)
    home = make_home()
    state = home / "sandbox"
    repositories = state / "repositories"
    with console.status("generating the sample repositories"):
        samples = generate(repositories)
    console.print(f"{len(samples.heads)} sample repositories in {repositories}", highlight=False)
    with running_sandbox(repositories, state, samples=True) as sandbox:
        os.environ.update(sandbox.environment)
        for service, url in sandbox.urls.items():
            console.print(f"sandbox {service}: {url}", highlight=False)
        _, why = ContainersResource().chosen()
        console.print(f"engine: {why}", highlight=False)
        with database() as store, dagster_instance() as instance:
            succeeded = run_months(console, instance, [Month.parse(key) for key in DEMO_MONTHS], RunOptions())
            with store.transaction() as connection:
                worked = finished_since(connection, began_at)
        results: Path | None = home / RESULTS
        if worked or not (home / RESULTS).exists():
            with console.status("writing the results"):
                results = write_showcase(home, DEMO_MONTHS)
        _close(sandbox, home, results, worked, time.monotonic() - started)
    raise typer.Exit(0 if succeeded else 1)


def write_showcase(home: Path, months: Sequence[str]) -> Path | None:
    """Write the dataset of the settings' Hub, the reports of *months* and the site to `results/` of *home*; replaces
    an earlier one. Return None if no month is released.
    """
    from formulacode_dagster.library import Dataset
    from formulacode_dagster.library.site.build import write_site
    from formulacode_dagster.releasing.dataset.hub_client import hub_api, hub_errors
    from resources.destination import hub_token
    from resources.settings import read_settings

    settings, folder = read_settings(), home / RESULTS
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
    write_site(Dataset.load(folder / "dataset"), folder / "site")
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
        console.print(f"  {results / 'site' / 'index.html'}   the tasks as pages", highlight=False)
        console.print(f"  {results / 'dataset'}   the release as Parquet", highlight=False)
        console.print(f"  {results / 'reports'}   the months' reports", highlight=False)
    console.print("  .venv/bin/fc-data funnel --month 2026-02        the funnel again", highlight=False)
    console.print(f"  .venv/bin/fc-data why {EXAMPLE}   the whole story of one pull request", highlight=False)
