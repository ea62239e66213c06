"""The assets of intake while GitHub fails: complete rows or named failures, and the next run completes the month."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import dagster as dg
import httpx
import pytest

from assets.pull_requests import pull_requests
from assets.repositories import repositories
from formulacode_dagster.models.intake import IntakeSource, SearchGap
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.models.reasons import TRANSIENT_KINDS
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import CHANGES, SEARCH_GAPS
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.windows import checksum_of_month
from formulacode_dagster.orchestration.build import build_definitions
from formulacode_dagster.sources.github.source import GitHubSource
from formulacode_dagster.sources.github.transport.client import GitHubTransport
from formulacode_dagster.sources.github.transport.retry import TransportRetries
from resources.intake import IntakeResource
from sandbox.github import Fault, Faults, ScriptedFault, app
from sandbox.github.faults import FaultSource
from sandbox.server import serving
from tests.support.clock import FakeClock
from tests.support.gates import open_gates
from tests.support.github import CALM, UNLIMITED
from tests.support.sampling import sampled
from tests.support.small_world import SMALL_PAGES, write_world

pytestmark = pytest.mark.slow

MONTH = "2026-02"
ASSETS = (repositories.definition, pull_requests.definition)
ENDPOINTS = ("GET /search/code", "graphql MergedCounts", "graphql MergedPullRequests")
PATIENCE = 0.5


def unhurried_intake(patience: float) -> IntakeResource:
    """GitHub, with waits that cost nothing, and no more than *patience* seconds for an answer."""

    class UnhurriedIntake(IntakeResource):
        def source(self, stage: Stage, month: str, run_id: str) -> IntakeSource:
            """The source, on a clock of its own."""
            client = GitHubTransport(
                self.settings.github_api_url,
                ["one", "two"],
                clock=FakeClock(),
                pacing=CALM,
                retries=TransportRetries(attempts=3),
                timeout=httpx.Timeout(patience),
            )
            return GitHubSource(client, stage, month, run_id, **SMALL_PAGES)

    return UnhurriedIntake()


class Platform:
    """The two assets over one database, and a GitHub with scripted faults."""

    def __init__(self, database: Database, gateway: Any) -> None:
        self._database = database
        self._gateway = gateway

    def run(self, faults: Faults = Faults(), *, force: bool = False, patience: float = 60.0) -> list[str]:  # noqa: B008 - frozen
        """Materialize both; returns the messages of those that failed, each a failure that our code raised."""
        self._gateway.faults = FaultSource(faults)
        self._gateway.reset()
        known = build_definitions(resource_overrides={"intake": unhurried_intake(patience)}).resources or {}
        said = []
        for asset in ASSETS:
            # its checks are not run here
            open_gates(self._database, pull_requests, MONTH)
            done = dg.materialize(
                [asset],
                partition_key=MONTH,
                resources={name: known[name] for name in set(asset.required_resource_keys) & known.keys()},
                run_config={"ops": {asset.key.path[-1]: {"config": {"force": force}}}},
                raise_on_error=False,
            )
            for event in done.get_step_failure_events():
                assert event.step_failure_data.user_failure_data is not None, event.step_failure_data.error
                said.append(event.step_failure_data.user_failure_data.description or "")
        return said

    def entries(self) -> list[LedgerEntry]:
        with self._database.transaction() as connection:
            return [line for stage in (Stage.REPOSITORIES, Stage.PULL_REQUESTS) for line in self._of(connection, stage)]

    @staticmethod
    def _of(connection: Any, stage: Stage) -> list[LedgerEntry]:
        return ledger.entries_of(connection, MONTH, stage)

    def failures(self) -> dict[str, str]:
        """Reason by item, of what failed; what is gone in the world itself left out."""
        failed = {entry.item: entry.reason for entry in self.entries() if entry.state is ItemState.FAILED}
        assert "unexpected" not in failed.values(), failed
        failed.pop("acme/gone", None)
        return failed

    def gaps(self) -> list[SearchGap]:
        """Searches that gave less than GitHub counts, which a check names."""
        with self._database.transaction() as connection:
            return SEARCH_GAPS.read(connection, MONTH)

    def state(self) -> tuple[Any, ...]:
        """Content of the month: the checksum of its facts, every change, every item's end."""
        with self._database.transaction() as connection:
            changes = sorted(
                (change.repository_id, change.number, change.merge_kind, change.base_sha, change.patch_sha256)
                for change in CHANGES.read(connection, MONTH)
            )
            checksum = checksum_of_month(connection, MONTH)
        return (
            checksum,
            changes,
            sorted((entry.stage, entry.item, entry.state, entry.reason) for entry in self.entries()),
        )


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Any, Path]]:
    folder = write_world(tmp_path_factory.mktemp("world") / "github")
    application = app(folder, limits=UNLIMITED)
    with serving(application) as url:
        yield url, application.state.gateway, folder


@pytest.fixture
def platform(
    world: tuple[str, Any, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: Database, database_url: str
) -> Platform:
    url, gateway, folder = world
    settings: Mapping[str, str] = {
        "FC_HOME": str(tmp_path / "home"),
        "FC_DATABASE_URL": database_url,
        "GH_TOKENS": "one",
        "GITHUB_API_URL": url,
        "GITHUB_CLONE_URL": folder.as_uri(),
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    return Platform(database, gateway)


@pytest.fixture(scope="module")
def expected() -> dict[str, Any]:
    """Content of the month without faults, once it is known."""
    return {}


def completes(platform: Platform, expected: dict[str, Any]) -> None:
    """The next run without faults; with `force` where GitHub refused for good."""
    kinds = set(platform.failures().values())
    assert platform.run(force=bool(kinds - TRANSIENT_KINDS)) == []
    assert platform.failures() == {}
    assert platform.gaps() == []
    assert platform.state() == expected.setdefault("state", platform.state())


def test_a_calm_month_is_whole(platform: Platform, expected: dict[str, Any]) -> None:
    assert platform.run() == []
    assert platform.failures() == {}
    checksum, changes, entries = expected.setdefault("state", platform.state())
    assert checksum
    assert len(changes) == 8
    assert len([item for _, item, state, _ in entries if "#" in item and state is ItemState.DONE]) == 8


@pytest.mark.parametrize(
    ("fault", "endpoint"), sampled([(fault, ENDPOINTS[n % 3]) for n, fault in enumerate(Fault)], most=4)
)
def test_a_fault_that_lasts_fails_by_name_and_the_next_run_completes(
    platform: Platform, expected: dict[str, Any], fault: Fault, endpoint: str
) -> None:
    lasting = ScriptedFault(endpoint=endpoint, fault=fault, times=1000)
    faults = Faults(scripted=(lasting,), slow_seconds=0.05, hang_seconds=2 * PATIENCE)
    said = platform.run(faults, patience=PATIENCE if fault is Fault.HANG else 60.0)
    assert all(said)
    named = bool(said or platform.failures() or platform.gaps())
    assert named == (fault is not Fault.SLOW)
    if not named:
        assert platform.state() == expected.setdefault("state", platform.state())
    completes(platform, expected)


@pytest.mark.parametrize("seed", sampled(range(4), most=1))
def test_a_month_with_mixed_faults_is_completed_by_the_next_run(
    platform: Platform, expected: dict[str, Any], seed: int
) -> None:
    chances = {fault: 0.04 for fault in Fault if fault is not Fault.HANG}
    assert all(platform.run(Faults(chances=chances, seed=seed, slow_seconds=0.05)))
    completes(platform, expected)
