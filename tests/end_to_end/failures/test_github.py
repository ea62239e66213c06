"""GitHub answers 403, 502 or half a page, or lacks a repository: complete, or a named failure; then the rest."""

from __future__ import annotations

import pytest

from formulacode_dagster.models.items import ItemState, Stage
from sandbox.github.faults import Fault, Faults, ScriptedFault
from sandbox.github.limits import Limits
from tests.support.sampling import sampled

MERGED = 22
WINDOWS = "graphql MergedPullRequests"
REPOSITORIES = 4
CALLS = 4
"""One counts the repositories, one lists their merges, one shows those of the month, one the versions of an issue."""
COMPLETE = {ItemState.DONE: MERGED}
WORDLOOM = "loomworks/wordloom"

ONE_OF_FOUR = "0.3"
"""The failure budget of a month of four repositories that may lose one, with more than a fourth of its changes."""

pytestmark = [pytest.mark.slow, pytest.mark.variant("fault of GitHub in a month", most=3)]


@pytest.mark.parametrize(
    ("fault", "more"),
    sampled(
        [
            (Fault.BAD_GATEWAY, 1),
            (Fault.SECONDARY_LIMIT, 1),
            (Fault.DROPPED, 1),
            # short ones are counted again, and each is requested separately
            (Fault.HALF_PAGE, 1 + REPOSITORIES),
            (Fault.NULL_NODE, 1 + 1),
        ],
        most=2,
        of=__name__,
    ),
)
def test_a_passing_fault_costs_a_few_calls_and_loses_nothing(seeded, fault, more) -> None:
    platform = seeded(Stage.REPOSITORIES)
    with platform.serve(faults=Faults.at(WINDOWS, 1, fault), limits=Limits(retry_after_seconds=1)) as served:
        said = platform.run(Stage.PULL_REQUESTS)
        assert CALLS < served.calls("github") <= CALLS + more
    assert said.succeeded, said.text
    assert platform.states(Stage.PULL_REQUESTS) == COMPLETE
    assert platform.count("merged_pull_requests") == platform.count("changes") == MERGED


def test_a_fault_in_discovery_hides_no_repository(seeded) -> None:
    platform = seeded()
    faults = Faults(
        scripted=(
            ScriptedFault(endpoint="GET /search/code", call=1, fault=Fault.SECONDARY_LIMIT),
            ScriptedFault(endpoint="GET /search/code", call=2, fault=Fault.HALF_PAGE),
            ScriptedFault(endpoint="graphql RepositoriesById", call=1, fault=Fault.BAD_GATEWAY),
        )
    )
    with platform.serve(faults=faults, limits=Limits(retry_after_seconds=1)):
        said = platform.run(Stage.REPOSITORIES)
    assert said.succeeded, said.text
    assert platform.count("repositories") == REPOSITORIES + 2, "with the archived one and the fork"


def test_a_short_window_closes_the_gate_and_the_next_run_completes_it(seeded) -> None:
    platform = seeded(Stage.REPOSITORIES)
    short = ScriptedFault(endpoint=WINDOWS, call=1, times=10_000, fault=Fault.NULL_NODE)
    with platform.serve(faults=Faults(scripted=(short,))):
        said = platform.run(Stage.PULL_REQUESTS)
        assert not said.succeeded
        said.tells("pull_requests/failures_within_budget: 1 of 4 repositories failed, 10% may (sample-org/gridpath)")
        (failed,) = [
            entry for entry in platform.entries(Stage.PULL_REQUESTS).values() if entry.state is ItemState.FAILED
        ]
        assert failed.reason == "incomplete"
        assert "is not complete" in failed.detail
        taken = platform.states(Stage.PULL_REQUESTS)[ItemState.DONE]
        assert 0 < taken < MERGED
        refused = platform.run(Stage.CLASSIFICATIONS)
        assert not refused.succeeded
        refused.tells("the gate pull_requests/failures_within_budget is shut", failed.item, "Mend the cause")
    with platform.serve() as served:
        assert platform.run(Stage.PULL_REQUESTS).succeeded
        assert served.calls("github") == 3, "the windows that are in are not asked for again"
    assert platform.states(Stage.PULL_REQUESTS) == COMPLETE


def test_a_dead_github_stops_the_stage_and_the_next_run_finishes(seeded) -> None:
    platform = seeded(Stage.REPOSITORIES)
    dead = ScriptedFault(endpoint="graphql", call=2, times=10_000, fault=Fault.BAD_GATEWAY)
    with platform.serve(faults=Faults(scripted=(dead,))):
        said = platform.run(Stage.PULL_REQUESTS)
        assert not said.succeeded
        said.tells("failed: pull_requests: github: ", "does not answer", "502", "the next run continues from here")
        assert len(said.complaints) == 1
    assert platform.count("intake_counts") == 0, "what was counted and not seen is not taken in"
    with platform.serve() as served:
        assert platform.run(Stage.PULL_REQUESTS).succeeded
        assert served.calls("github") == CALLS
    assert platform.states(Stage.PULL_REQUESTS) == COMPLETE


def test_a_token_that_is_refused_is_named_by_position_and_never_shown(seeded) -> None:
    platform = seeded(Stage.REPOSITORIES)
    refused = ScriptedFault(call=1, times=10_000, fault=Fault.UNAUTHORIZED)
    with platform.serve(faults=Faults(scripted=(refused,))):
        platform.settings["GH_TOKENS"] = "ghp_aVerySecretToken"
        said = platform.run(Stage.PULL_REQUESTS)
    assert not said.succeeded
    said.tells("GitHub rejects all tokens in GH_TOKENS", "token 1 of 1", "Replace them by valid ones")
    assert "aVerySecret" not in said.text
    assert len(said.complaints) == 1


def test_without_a_token_the_message_says_which_setting_is_missing(seeded) -> None:
    platform = seeded()
    with platform.serve():
        platform.settings["GH_TOKENS"] = ""
        said = platform.run(Stage.REPOSITORIES)
    assert not said.succeeded
    said.tells("GitHub demands a token", "Set GH_TOKENS")


def test_a_repository_that_vanished_after_discovery_fails_by_itself(seeded) -> None:
    platform = seeded(Stage.REPOSITORIES)
    platform.settings["FC_FAILURE_BUDGET"] = ONE_OF_FOUR
    with platform.serve(folder=platform.folder_of(gone=(WORDLOOM,))):
        said = platform.run(Stage.PULL_REQUESTS)
        assert said.succeeded, said.text
        entry = platform.entries(Stage.PULL_REQUESTS)[WORDLOOM]
        assert (entry.state, entry.reason) == (ItemState.FAILED, "vanished")
        assert f"{WORDLOOM} is gone from GitHub" in entry.detail
        others = platform.states(Stage.PULL_REQUESTS)[ItemState.DONE]
        assert others == MERGED - 6
        assert platform.run(Stage.CLASSIFICATIONS).succeeded
    with platform.serve() as served:
        assert platform.run(Stage.PULL_REQUESTS, only=(WORDLOOM,), force=True).succeeded
        assert served.calls("github") == CALLS
    assert platform.states(Stage.PULL_REQUESTS) == COMPLETE


def test_an_uncloneable_repository_fails_only_its_pull_requests(seeded) -> None:
    platform = seeded(Stage.REPOSITORIES)
    platform.settings["FC_FAILURE_BUDGET"] = ONE_OF_FOUR
    platform.settings["FC_MIRRORS_DIR"] = str(platform.home / "mirrors")
    without = platform.folder_of("sample-org/gridpath", "numeric-samples/tilemath", "signal-kit/rollwin")
    with platform.serve():
        platform.settings["GITHUB_CLONE_URL"] = without.as_uri()
        said = platform.run(Stage.PULL_REQUESTS)
        assert said.succeeded, said.text
        failed = [entry for entry in platform.entries(Stage.PULL_REQUESTS).values() if entry.state is ItemState.FAILED]
        assert {entry.reason for entry in failed} == {"mirror"}
        assert {entry.item.partition("#")[0] for entry in failed} == {WORDLOOM}
        assert all("cannot be cloned" in entry.detail for entry in failed)
    with platform.serve():
        assert platform.run(Stage.PULL_REQUESTS, only=(WORDLOOM,)).succeeded
    assert platform.states(Stage.PULL_REQUESTS) == COMPLETE


def test_a_repository_that_vanished_before_discovery_is_recorded(seeded) -> None:
    platform = seeded()
    platform.settings["FC_FAILURE_BUDGET"] = ONE_OF_FOUR
    with platform.serve(folder=platform.folder_of(gone=(WORDLOOM,))):
        said = platform.run(Stage.REPOSITORIES, Stage.PULL_REQUESTS)
        assert said.succeeded, said.text
    assert WORDLOOM not in platform.entries(Stage.PULL_REQUESTS)
    assert platform.states(Stage.PULL_REQUESTS) == {ItemState.DONE: MERGED - 6}
    with platform.serve():
        assert platform.run(Stage.REPOSITORIES, force=True).succeeded
        assert platform.run(Stage.PULL_REQUESTS).succeeded
    assert platform.states(Stage.PULL_REQUESTS) == COMPLETE
