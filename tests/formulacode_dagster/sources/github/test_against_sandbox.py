"""Intake over real HTTP, against a GitHub that fails where the real one does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.intake import MergedWindow
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import Repository, RepositoryState
from formulacode_dagster.sources.git.changes import change_of
from formulacode_dagster.sources.git.landing import wanted_commits
from formulacode_dagster.sources.git.mirror import MirrorCache
from formulacode_dagster.sources.github.source import GitHubSource
from formulacode_dagster.sources.github.transport.client import GitHubTransport
from sandbox.github import Fault, Faults, ScriptedFault, app
from sandbox.server import serving
from tests.support.github import CALM, UNLIMITED
from tests.support.intake import windows_of

MONTHS = (Month.parse("2026-01"), Month.parse("2026-02"))


def asked(url: str, clock: Any, ask: Callable[[GitHubSource], Coroutine[Any, Any, Any]], **more: Any) -> Any:
    async def inside() -> Any:
        client = GitHubTransport(url, more.pop("tokens", ["token"]), clock=clock, pacing=CALM)
        async with GitHubSource(client, Stage.PULL_REQUESTS, MONTHS[0].key, "run") as source:
            return await ask(source)

    return asyncio.run(inside())


async def discover(source: GitHubSource) -> tuple[Repository, ...]:
    return await source.discover(MONTHS[0])


async def intake(source: GitHubSource) -> tuple[tuple[Repository, ...], list[MergedWindow]]:
    found = await discover(source)
    active = [row for row in found if row.state is RepositoryState.ACTIVE]
    windows = await asyncio.gather(*(windows_of(source, month, active) for month in MONTHS))
    return found, [window for of_month in windows for window in of_month]


@pytest.fixture(scope="module")
def calm(samples):
    """The result of intake without faults."""
    with serving(app(samples.folder)) as url:
        return asked(url, None, intake)


@pytest.mark.slow
def test_an_enterprise_server_is_asked_below_its_own_roots(samples, calm, clock):
    application = app(samples.folder, is_server=True)
    with serving(application) as url:
        assert asked(f"{url}/api/v3", clock, intake) == calm
    assert application.state.accounting.as_json()["endpoints"]["graphql"] > 0


@pytest.mark.slow
def test_intake_finds_every_sample_pull_request_at_its_merge(samples, calm, tmp_path):
    cache = MirrorCache(tmp_path, f"file://{samples.folder}")
    landed = {}
    for window in calm[1]:
        assert window.count.reported == window.count.stored
        with cache.ensure(window.count.repository, commits=wanted_commits(window.pull_requests)) as mirror:
            for facts in window.pull_requests:
                change, _ = change_of(mirror, facts)
                landed[facts.item] = (facts.month, facts.merge_commit_sha, change.base_sha, change.merge_kind)
    active = {window.count.repository for window in calm[1]}
    expected = {
        pull_request.item: (
            pull_request.month,
            pull_request.merge_commit_sha,
            pull_request.base_sha,
            pull_request.merge_kind,
        )
        for pull_request in samples.pull_requests
        if pull_request.item.partition("#")[0] in active and pull_request.month in {month.key for month in MONTHS}
    }
    assert landed == expected
    assert len(expected) > 20


CURABLE = [fault for fault in Fault if fault not in (Fault.HANG, Fault.UNAUTHORIZED, Fault.GONE)]
CALLS = ("GET /search/code", "graphql RepositoriesById")
WINDOWS = ("graphql MergedCounts", "graphql MergedPullRequests")


def one_after_another(*endpoints: str) -> Faults:
    """Every curable fault, each at a call whose repetition is answered."""
    scripted = (
        ScriptedFault(endpoint=endpoint, call=2 * index + 1, fault=fault)
        for index, fault in enumerate(CURABLE)
        for endpoint in endpoints
    )
    return Faults(scripted=tuple(scripted), slow_seconds=0.05)


@pytest.mark.slow
def test_every_kind_of_fault_leads_to_the_same_windows(samples, calm, clock):
    with serving(app(samples.folder, faults=one_after_another(*WINDOWS), limits=UNLIMITED)) as url:
        for _ in range(3):
            assert asked(url, clock, intake) == calm


@pytest.mark.slow
def test_every_kind_of_fault_leads_to_the_same_repositories(samples, calm, clock):
    faults = one_after_another("GET /search/code", "graphql RepositoriesById")
    with serving(app(samples.folder, faults=faults, limits=UNLIMITED)) as url:
        for _ in CURABLE:
            assert asked(url, clock, discover) == calm[0]


@pytest.mark.parametrize("endpoint", CALLS)
def test_a_refusal_for_good_is_a_named_failure(samples, clock, endpoint):
    with serving(app(samples.folder, faults=Faults.at(endpoint, 1, Fault.GONE))) as url, pytest.raises(ItemFailure):
        asked(url, clock, intake)


@pytest.mark.slow
@pytest.mark.parametrize("endpoint", WINDOWS)
def test_windows_refused_together_are_taken_in_apart(samples, calm, clock, endpoint):
    with serving(app(samples.folder, faults=Faults.at(endpoint, 1, Fault.GONE))) as url:
        assert asked(url, clock, intake) == calm


@pytest.mark.parametrize("seed", range(2))
def test_faults_now_and_then_change_nothing(samples, calm, clock, seed):
    kinds = (Fault.BAD_GATEWAY, Fault.SECONDARY_LIMIT, Fault.TRUNCATED, Fault.RESET, Fault.NULL_NODE, Fault.DROPPED)
    with serving(app(samples.folder, faults=Faults(chances=dict.fromkeys(kinds, 0.05), seed=seed))) as url:
        assert asked(url, clock, intake) == calm


def test_without_a_token_the_setting_is_named(samples, clock):
    with serving(app(samples.folder)) as url, pytest.raises(ConfigurationError, match="GH_TOKENS"):
        asked(url, clock, intake, tokens=[])


def test_a_renamed_repository_is_found_by_its_old_name(samples, clock):
    with serving(app(samples.folder)) as url:
        found = asked(url, clock, lambda source: source.discover(MONTHS[0], ("rpatel/loom",)))
    (row,) = [row for row in found if "rpatel/loom" in row.aliases]
    assert row.full_name == "loomworks/wordloom"
