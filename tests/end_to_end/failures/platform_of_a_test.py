"""A platform for one test over the sample repositories: served on localhost, with scripted faults, run."""

from __future__ import annotations

import io
import os
import re
import subprocess
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from rich.console import Console
from sqlalchemy import make_url, text
from starlette.types import ASGIApp

from formulacode_dagster.models.items import ItemState, LedgerEntry, RunOptions, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.embedded import start_embedded
from resources.documentation import SETTINGS
from sandbox.github import app as github_app
from sandbox.github.faults import Faults
from sandbox.github.limits import Limits
from sandbox.hub import app as hub_app
from sandbox.model.app import app as model_app
from sandbox.model.faults import ModelFaults
from sandbox.samples import SampleSet
from sandbox.server import serving
from sandbox.session import SUITS_SAMPLES
from tests.end_to_end.failures.served import DEADLINE, Served, Turnstile
from tests.support.command_line import FC_DATA
from tests.support.samples import lay_samples

ROOT = Path(__file__).parents[3]
MONTH = "2026-02"
KEPT = ("PATH", "HOME", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", "PIP_CERT", "XDG_RUNTIME_DIR", "FC_OS_IMAGE")
FAST = {"FC_ENGINE": "process", "FC_RETRY_SECONDS": "0", **SUITS_SAMPLES}
POLL = 0.02


@dataclass(frozen=True)
class CommandResult:
    """How a run ended, and its output for the user."""

    succeeded: bool
    text: str

    def tells(self, *parts: str) -> None:
        """Assert that the user saw *parts*, and no traceback."""
        assert "Traceback" not in self.text, self.text
        for part in parts:
            assert part in self.text, self.text

    @property
    def complaints(self) -> list[str]:
        """The lines that say what failed."""
        return [line for line in self.text.splitlines() if line.startswith(("failed: ", "error: "))]


def plain(output: str) -> str:
    """Without colours."""
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", output)


@dataclass
class Platform:
    """A home and settings; runs `fc-data` in a process of its own, or what it calls in this one."""

    home: Path
    settings: dict[str, str]
    samples: SampleSet
    instance: dg.DagsterInstance
    _database: Database | None = field(default=None, repr=False)

    @property
    def database(self) -> Database:
        """The one of the settings, or the embedded one of the home."""
        if self._database is None:
            self._database = Database(self.settings.get("FC_DATABASE_URL") or start_embedded(self.home / "postgres"))
        return self._database

    def close(self) -> None:
        """Give back the connections."""
        if self._database is not None:
            self._database.close()

    @contextmanager
    def serve(
        self,
        *,
        folder: Path | None = None,
        limits: Limits | None = None,
        faults: Faults | None = None,
        model_faults: ModelFaults | None = None,
        hold: tuple[str, int] | None = None,
    ) -> Iterator[Served]:
        """Serve *folder* (the samples, when not given) and point the settings at it for the length of the block.

        *hold* names a service and how many of its POST requests pass before the turnstile shuts.
        """
        repositories = folder or self.samples.folder
        apps: dict[str, ASGIApp] = {
            "github": github_app(repositories, limits=limits or Limits(), faults=faults or Faults()),
            "model": model_app(model_faults),
            "hub": hub_app(self.home / "served-hub"),
        }
        turnstile = None
        if hold is not None:
            apps[hold[0]] = turnstile = Turnstile(apps[hold[0]], hold[1])
        before = dict(self.settings)
        with ExitStack() as stack:
            urls = {name: stack.enter_context(serving(app, name=name)) for name, app in apps.items()}
            if turnstile is not None:
                stack.callback(turnstile.open)
            self.settings |= {
                "GITHUB_API_URL": urls["github"],
                "GITHUB_CLONE_URL": repositories.as_uri(),
                "GH_TOKENS": "sandbox",
                "LLM_BASE_URL": f"{urls['model']}/v1",
                "LLM_MODEL": "sandbox-rules",
                "LLM_API_KEY": "sandbox",
                "HF_ENDPOINT": urls["hub"],
                "HF_DATASET": "sandbox/formulacode",
                "HF_TOKEN": "sandbox",
            }
            try:
                yield Served(urls, turnstile)
            finally:
                self.settings = before

    def folder_of(self, *names: str, gone: tuple[str, ...] = ()) -> Path:
        """A folder of some of the samples (all when none is named); of those *gone* only the search index knows."""
        folder = self.home.parent / f"served-{uuid.uuid4().hex[:8]}"
        lay_samples(self.samples, folder, names or tuple(self.samples.heads), gone=gone)
        return folder

    def environment(self, **more: str) -> dict[str, str]:
        """For a process of its own: nothing of this one but what any program needs."""
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        return {**kept, "FC_HOME": str(self.home), "COLUMNS": "160", **self.settings, **more}

    def fc_data(self, *arguments: str, cwd: Path = ROOT, **more: str) -> CommandResult:
        """Run `fc-data` in a process of its own to its end."""
        with self.started(*arguments, cwd=cwd, **more) as process:
            return self.ended(process)

    @contextmanager
    def started(self, *arguments: str, cwd: Path = ROOT, **more: str) -> Iterator[subprocess.Popen[str]]:
        """`fc-data` in a process of its own, killed at the end of the block."""
        process = subprocess.Popen(
            [str(FC_DATA), *arguments],
            env=self.environment(**more),
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        with process:
            try:
                yield process
            finally:
                process.kill()

    def ended(self, process: subprocess.Popen[str]) -> CommandResult:
        """How *process* ended and what it said."""
        output, _ = process.communicate(timeout=2 * DEADLINE)
        return CommandResult(process.returncode == 0, plain(output))

    def run(self, *stages: Stage, **options: Any) -> CommandResult:
        """Do as `fc-data run`, in this process: each of *stages* with its checks, or the whole month.

        What Dagster keeps of it stays in memory; on disk its storage takes as long as most stages of the samples.
        """
        from formulacode_dagster.cli.operate import run_months
        from formulacode_dagster.models.errors import FormulaCodeError

        written = io.StringIO()
        console = Console(file=written, width=160, soft_wrap=True)
        chosen: list[tuple[Stage, ...]] = [(stage,) for stage in stages] or [()]
        with pytest.MonkeyPatch.context() as patched:
            for setting in SETTINGS:
                patched.delenv(setting.name, raising=False)
            patched.setenv("DAGSTER_HOME", "")
            patched.setenv("FC_HOME", str(self.home))
            for name, value in self.settings.items():
                patched.setenv(name, value)
            try:
                ends = [
                    run_months(console, self.instance, [Month.parse(MONTH)], RunOptions(**options), stages=some)
                    for some in chosen
                ]
            except FormulaCodeError as error:
                # as `cli.main` does
                console.print(f"error: {error}", highlight=False)
                ends = [False]
        return CommandResult(all(ends), plain(written.getvalue()))

    def entries(self, stage: Stage) -> dict[str, LedgerEntry]:
        """The ledger of a stage, by item."""
        with self.database.transaction() as connection:
            return {entry.item: entry for entry in ledger.entries_of(connection, MONTH, stage)}

    def ledger(self) -> dict[tuple[Stage, str], LedgerEntry]:
        """The whole ledger of the month."""
        with self.database.transaction() as connection:
            return {(entry.stage, entry.item): entry for entry in ledger.entries_of(connection, MONTH)}

    def states(self, stage: Stage) -> Counter[ItemState]:
        """How many pull requests are in which state of *stage*."""
        return Counter(entry.state for item, entry in self.entries(stage).items() if "#" in item)

    def count(self, table: str) -> int:
        """Rows of an artifact's month."""
        statement = text(f"SELECT count(*) FROM {table} WHERE month = :month")  # noqa: S608 - our own names
        with self.database.transaction() as connection:
            return int(connection.execute(statement, {"month": MONTH}).scalar_one())

    def administer(self, statement: str, **parameters: str | None) -> None:
        """Run *statement* as the server's owner, outside this platform's database."""
        server = Database(make_url(self.settings["FC_DATABASE_URL"]).set(database="postgres").render_as_string(False))
        with server.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(statement), parameters)
        server.close()

    def wait_for(self, condition: Callable[[], Any], what: str, *, seconds: float = DEADLINE) -> Any:
        """The first true value of *condition*."""
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            if found := condition():
                return found
            time.sleep(POLL)
        raise AssertionError(f"waited {seconds:.0f} s in vain for {what}")
