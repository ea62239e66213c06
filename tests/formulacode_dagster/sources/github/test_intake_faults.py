"""Every kind of fault at every call of a small intake: it ends complete and identical, or in named failures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from formulacode_dagster.models.errors import FormulaCodeError, ItemFailure, Rejection
from formulacode_dagster.models.intake import MergedWindow, SearchGap
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.repository import Repository, RepositoryState
from formulacode_dagster.sources.github.source import GitHubSource
from formulacode_dagster.sources.github.transport.client import GitHubTransport
from formulacode_dagster.sources.github.transport.retry import TransportRetries
from sandbox.github import Fault, Faults, ScriptedFault, app
from sandbox.github.faults import FaultSource
from sandbox.server import serving
from tests.support.clock import FakeClock
from tests.support.github import CALM, FEBRUARY, UNLIMITED
from tests.support.intake import window_ends
from tests.support.sampling import SEED, TAKES_ALL, sampled
from tests.support.small_world import SMALL_PAGES, WANTED, write_world

PATIENCE = 0.5
"""Seconds after which the client gives up on an answer, where one hangs."""
# what its fixtures make is made in one process
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group(__name__)]


@dataclass
class Ends:
    """How an intake ended: discovery, then the window of each repository by id."""

    discovered: tuple[Repository, ...] | FormulaCodeError
    windows: dict[int, MergedWindow | FormulaCodeError] = field(default_factory=dict)
    gaps: tuple[SearchGap, ...] = ()


class Intake:
    """A sandbox with scripted faults, and an intake from it without real waits."""

    def __init__(self, url: str, state: Any) -> None:
        self._url = url
        self._gateway = state.gateway
        self.books: dict[str, Any] = {}
        self.answers: list[tuple[str, Any]] = []
        """Every GraphQL operation with the data of its answer."""

    def run(self, *scripted: ScriptedFault, known: tuple[Repository, ...] = (), **more: Any) -> Ends:
        """Discovery, unless its rows are *known*, and the windows of active repositories, all at once."""
        faults = Faults(scripted=scripted, slow_seconds=0.05, hang_seconds=PATIENCE * 2, **more)
        self._gateway.faults = FaultSource(faults)
        self._gateway.reset()
        self.answers = []
        hangs = any(script.fault is Fault.HANG for script in scripted) or Fault.HANG in faults.chances
        ends = asyncio.run(self._run(known, PATIENCE if hangs else 60.0))
        self.books = self._gateway.accounting.as_json()
        return ends

    async def _run(self, known: tuple[Repository, ...], patience: float) -> Ends:
        client = GitHubTransport(
            self._url,
            ["token", "another"],
            clock=FakeClock(),
            pacing=CALM,
            retries=TransportRetries(attempts=3),
            timeout=httpx.Timeout(patience),
            transport=Recording(self.answers),
        )
        gaps: list[SearchGap] = []
        async with GitHubSource(client, Stage.PULL_REQUESTS, FEBRUARY.key, "run", **SMALL_PAGES) as source:
            try:
                discovered = known or await source.discover(FEBRUARY, WANTED, gaps.append)
            except FormulaCodeError as error:
                return Ends(error)
            active = [row for row in discovered if row.state is RepositoryState.ACTIVE]
            found = await window_ends(source, FEBRUARY, active)
        windows: dict[int, MergedWindow | FormulaCodeError] = {}
        for row, end in zip(active, found, strict=True):
            if not isinstance(end, (MergedWindow, FormulaCodeError)):
                raise end
            windows[row.id] = end
        return Ends(discovered, windows, tuple(gaps))


class Recording(httpx.AsyncHTTPTransport):
    """Real HTTP that writes down what GraphQL answers."""

    def __init__(self, answers: list[tuple[str, Any]]) -> None:
        # requests are plain HTTP, and certificates take longer to load than an intake
        super().__init__(verify=False)
        self._answers = answers

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        response = await super().handle_async_request(request)
        if request.method == "POST":
            operation = json.loads(request.content)["query"].split("query ", 1)[1].split("(", 1)[0]
            body = await response.aread()
            if response.status_code == 200 and body.endswith(b"}"):
                self._answers.append((operation, json.loads(body).get("data")))
        return response


@pytest.fixture(scope="module")
def intake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Intake]:
    application = app(write_world(tmp_path_factory.mktemp("faults") / "github"), limits=UNLIMITED)
    with serving(application) as url:
        yield Intake(url, application.state)


@pytest.fixture(scope="module")
def calm(intake: Intake) -> Ends:
    """The result of intake without faults, and `calm.calls`: its calls."""
    ends = intake.run()
    assert isinstance(ends.discovered, tuple)
    return ends


def test_the_small_intake_asks_in_every_way_there_is(intake: Intake, calm: Ends) -> None:
    assert intake.run() == calm
    assert {name for name in intake.books["endpoints"] if name != "graphql"} == {
        "GET /search/code",
        "graphql RepositoriesById",
        "graphql RepositoriesByName",
        "graphql MergedCounts",
        "graphql MergedPullRequests",
        "graphql NewestMerges",
        "graphql PullRequestLabels",
        "graphql PullRequestClosingIssues",
        "graphql BodyVersions",
    }
    assert sorted(len(window.pull_requests) for window in calm.windows.values()) == [0, 1, 1, 2, 5]


NAMED = {"vanished", "incomplete", "overloaded", "graphql", "request", "forbidden"}


UNSEEN = (RepositoryState.VANISHED, RepositoryState.PRIVATE)


def check(ends: Ends, calm: Ends, *, gone: bool = False) -> list[str]:
    """The names of the failures in *ends*, else as in *calm*; *gone* means that GitHub calls something gone."""
    if isinstance(ends.discovered, FormulaCodeError):
        assert not ends.windows
        return [named(ends.discovered, gone=gone)]
    assert isinstance(calm.discovered, tuple)
    unseen = {row.full_name for row in ends.discovered if gone and row.state in UNSEEN}
    expected = [row for row in calm.discovered if not unseen & {row.full_name, *row.aliases}]
    if ends.gaps:
        # code search showed less than it counts, and says so
        expected = [row for row in expected if row in ends.discovered]
    assert [row for row in ends.discovered if row.full_name not in unseen] == expected
    assert ends.windows.keys() == calm.windows.keys() & {row.id for row in expected}
    failures = ["search_gap" for _ in ends.gaps]
    for id_, end in ends.windows.items():
        if isinstance(end, MergedWindow):
            assert end == calm.windows[id_]
            assert end.count.stored == end.count.reported == len(end.pull_requests)
        else:
            failures.append(named(end, gone=gone))
    return failures


def named(error: FormulaCodeError, *, gone: bool) -> str:
    """A failure that says which it is; a decision against a repository is none, and was not GitHub's."""
    assert not isinstance(error, Rejection), error
    if isinstance(error, ItemFailure):
        assert error.kind in NAMED, error
        assert gone or error.kind != "vanished", error
        return error.kind
    return type(error).__name__


@pytest.fixture(scope="module")
def calls(intake: Intake, calm: Ends) -> list[tuple[str, int]]:
    """Every call of a calm intake, as (endpoint, which call to it)."""
    assert intake.run() == calm
    endpoints = {name: count for name, count in intake.books["endpoints"].items() if name != "graphql"}
    return [(name, call) for name, count in endpoints.items() for call in range(1, count + 1)]


def known(endpoint: str, calm: Ends) -> tuple[Repository, ...]:
    """Discovery that need not be repeated for a fault at *endpoint*."""
    assert isinstance(calm.discovered, tuple)
    return () if "search/code" in endpoint or "Repositories" in endpoint else calm.discovered


CURED = set(Fault) - {Fault.GONE}
"""Faults that one more try, or another token, cures."""


@pytest.mark.parametrize("fault", Fault)
def test_one_fault_at_any_call_is_cured_or_has_a_name(
    intake: Intake, calm: Ends, calls: list[tuple[str, int]], fault: Fault
) -> None:
    for endpoint, call in sampled(calls, most=4, of=fault):
        ends = intake.run(ScriptedFault(endpoint=endpoint, call=call, fault=fault), known=known(endpoint, calm))
        assert sum(intake.books["faults"].values()) == 1, (endpoint, call)
        failures = check(ends, calm, gone=fault is Fault.GONE)
        assert not (failures and fault in CURED), (endpoint, call, failures)


@pytest.mark.parametrize("fault", Fault)
def test_a_fault_that_lasts_has_a_name(intake: Intake, calm: Ends, calls: list[tuple[str, int]], fault: Fault) -> None:
    endpoints = sorted({endpoint for endpoint, _ in calls})
    for endpoint in sampled(endpoints, most=2, of=fault) if fault is not Fault.HANG else endpoints[:1]:
        ends = intake.run(ScriptedFault(endpoint=endpoint, times=1000, fault=fault), known=known(endpoint, calm))
        failures = check(ends, calm, gone=fault is Fault.GONE)
        harmless = {Fault.SLOW, Fault.INCOMPLETE, Fault.HALF_PAGE, Fault.NULL_NODE, Fault.FIELD}
        assert failures or fault in harmless, (endpoint, failures)
    assert check(intake.run(), calm) == []


def paths_of(data: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every part of an answer; of a list, the first."""
    if path:
        yield path
    parts = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for name, inner in parts:
        if not isinstance(data, list) or name == 0:
            yield from paths_of(inner, (*path, name))


@pytest.mark.parametrize("error_type", ["", "NOT_FOUND", "FORBIDDEN"])
def test_any_part_of_an_answer_may_fail_without_losing_data(intake: Intake, calm: Ends, error_type: str) -> None:
    assert intake.run() == calm
    first_answers: dict[str, Any] = {}
    for operation, data in intake.answers:
        first_answers.setdefault(operation, data)
    parts = [
        (operation, path)
        for operation, data in first_answers.items()
        for path in paths_of(data)
        if not error_type or (len(path) <= 3 and "Repositories" in operation)
    ]
    wrong = []
    for operation, path in sampled(parts, most=len(parts) // 8, of=error_type):
        fault = ScriptedFault(
            endpoint=f"graphql {operation}", fault=Fault.FIELD, path=path, error_type=error_type, times=1000
        )
        ends = intake.run(fault, known=known(operation, calm))
        try:
            check(ends, calm, gone=error_type != "")
        except AssertionError as error:
            wrong.append(f"{operation} {'.'.join(map(str, path))}: {str(error).splitlines()[0][:100]}")
    assert not wrong, "\n".join(wrong)


CHANCES = st.dictionaries(st.sampled_from(list(Fault)), st.floats(0.01, 0.2), min_size=1, max_size=5)


@seeded(SEED)
@settings(max_examples=15 if TAKES_ALL else 4, deadline=None, suppress_health_check=list(HealthCheck))
@given(chances=CHANCES, seed=st.integers(0, 10**6))
def test_faults_of_all_kinds_mixed_leave_nothing_short(intake: Intake, calm: Ends, chances: Any, seed: int) -> None:
    check(intake.run(chances=chances, seed=seed), calm, gone=Fault.GONE in chances)
    assert check(intake.run(), calm) == []
