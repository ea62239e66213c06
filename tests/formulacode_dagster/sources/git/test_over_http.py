"""Filtered mirrors over real HTTP, from a git that lets clients ask for what GitHub's does."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from formulacode_dagster.models.errors import ItemFailure, SuspectedOutage
from formulacode_dagster.models.pull_request import MergeKind
from formulacode_dagster.operating.cancellation.backoff import Backoff
from formulacode_dagster.operating.cancellation.last_answers import has_answered_since
from formulacode_dagster.sources.git.blobs import is_filtered
from formulacode_dagster.sources.git.changes import change_of, prepare
from formulacode_dagster.sources.git.faults import SYSTEM
from formulacode_dagster.sources.git.mirror import MirrorCache
from formulacode_dagster.sources.git.shared_mirrors import SharedMirrors

NAME = "demo/project"


@pytest.fixture
def cache(tmp_path, git_host) -> MirrorCache:
    return MirrorCache(tmp_path / "mirrors", git_host.url, backoff=Backoff(first_seconds=0.01, longest_seconds=0.05))


@pytest.fixture
def month(origin):
    """Facts of five squashes of two commits each, and of a rebase of three."""
    found = []
    for number in range(1, 6):
        origin.branch(f"topic-{number}")
        for step in "ab":
            origin.write({f"{number}{step}.py": f"x = {number}\n", "a.py": f"{number}{step}\n"})
            head = origin.commit(f"{number} {step}", author="Bob <bob@example.org>")
        origin.git("checkout", "--quiet", "main")
        origin.git("merge", "--quiet", "--squash", f"topic-{number}")
        merge = origin.commit(f"Squash {number}")
        origin.publish(number=number, head=head)
        found.append(origin.facts(merge, number=number, head_sha=head, commit_count=2, changed_files=3))
    origin.branch("rebased")
    steps = []
    for step in range(3):
        origin.write({f"r{step}.py": f"r = {step}\n"})
        steps.append(origin.commit(f"Step {step}", author="Bob <bob@example.org>"))
    origin.git("checkout", "--quiet", "main")
    origin.write({"b.py": "between\n"})
    origin.commit("Between")
    for sha in steps:
        origin.git("cherry-pick", sha)
    origin.publish(number=6, head=steps[-1])
    found.append(origin.facts(origin.sha(), number=6, head_sha=steps[-1], commit_count=3, changed_files=3))
    return found


@pytest.mark.slow
def test_a_month_of_pull_requests_costs_as_many_requests_as_one(cache, git_host, month):
    with SharedMirrors(cache, {NAME: month}) as mirrors:
        with mirrors.mirror(NAME) as mirror:
            assert is_filtered(mirror.path)
        asked = len(git_host.requests)
        assert asked <= 9, git_host.requests
        kinds = []
        for facts in month:
            with mirrors.mirror(NAME) as mirror:
                kinds.append(change_of(mirror, facts)[0].merge_kind)
        assert kinds == [MergeKind.SQUASH] * 5 + [MergeKind.REBASE]
        assert git_host.requests[asked:] == []
    with SharedMirrors(cache, {NAME: month}) as again, again.mirror(NAME) as mirror:
        change_of(mirror, month[0])
    assert git_host.requests[asked:] == []


@pytest.mark.slow
def test_without_preparing_a_change_is_the_same_at_the_price_of_requests(cache, git_host, month, tmp_path, origin):
    with cache.ensure(NAME, commits=[month[5].merge_commit_sha, month[5].head_sha]) as mirror:
        asked = len(git_host.requests)
        lazily = change_of(mirror, month[5])
    assert len(git_host.requests) > asked
    with MirrorCache(tmp_path / "whole", origin.url).ensure(NAME, commits=[month[5].head_sha]) as whole:
        assert change_of(whole, month[5]) == lazily


@pytest.mark.slow
def test_a_commit_missing_on_the_host_costs_one_request_and_fails(cache, git_host, month):
    lost = month[0].model_copy(update={"number": 99, "merge_commit_sha": "e" * 40})
    with SharedMirrors(cache, {NAME: [lost, *month]}) as mirrors, mirrors.mirror(NAME) as mirror:
        with pytest.raises(ItemFailure) as caught:
            change_of(mirror, lost)
        assert caught.value.kind == "commit_missing"
        asked = len(git_host.requests)
        assert change_of(mirror, month[0])[0].merge_kind is MergeKind.SQUASH
        assert len(git_host.requests) == asked


@pytest.mark.slow
def test_threads_wait_for_one_opening_and_then_share(cache, git_host, month):
    def change(facts):
        with mirrors.mirror(NAME) as mirror:
            return change_of(mirror, facts)[0].number

    with SharedMirrors(cache, {NAME: month}) as mirrors, ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(change, month)) == [1, 2, 3, 4, 5, 6]
    assert len(git_host.requests) <= 9


@pytest.mark.slow
def test_a_repository_that_is_gone_is_asked_for_once(cache, git_host, month):
    with SharedMirrors(cache, {"demo/gone": month}) as mirrors:
        for _ in month:
            with pytest.raises(ItemFailure) as caught, mirrors.mirror("demo/gone"):
                pass
            assert caught.value.kind == "vanished"
    assert git_host.requests == ["GET refs"]


@pytest.mark.slow
def test_only_a_few_mirrors_stay_open(cache, origin, month):
    names = [f"demo/copy-{number}" for number in range(4)]
    for name in names:
        (origin.host / f"{name}.git").symlink_to(origin.bare)
    with SharedMirrors(cache, dict.fromkeys(names, month)) as mirrors:
        for name in names:
            with mirrors.mirror(name) as mirror:
                change_of(mirror, month[0])
        held = [shared.mirror is not None for shared in mirrors._shared.values()]
    assert held == [False, False, True, True]


@pytest.mark.slow
@pytest.mark.parametrize("status", [502, 503, 429])
def test_a_host_failing_during_a_fetch_is_suspected_without_damage(cache, git_host, month, status):
    with cache.ensure(NAME, commits=[month[0].merge_commit_sha]) as mirror:
        git_host.refuse = status
        with pytest.raises(SuspectedOutage):
            change_of(mirror, month[0])
        with pytest.raises(SuspectedOutage):
            prepare(mirror, month[:1])
        git_host.refuse = None
        assert change_of(mirror, month[0])[0].merge_kind is MergeKind.SQUASH
        assert not (mirror.path / "broken").exists()


@pytest.mark.slow
def test_a_mirror_follows_its_host_to_another_address(cache, git_host, month, tmp_path, origin):
    cache.ensure(NAME).close()
    git_host.refuse = 500
    moved = MirrorCache(tmp_path / "mirrors", origin.url, filtered=True)
    with moved.ensure(NAME, commits=[month[0].merge_commit_sha]) as mirror:
        assert change_of(mirror, month[0])[0].merge_kind is MergeKind.SQUASH


@pytest.mark.slow
def test_only_a_fetched_mirror_proves_that_the_host_answers(cache, month):
    begun = time.monotonic()
    with cache.ensure(NAME, commits=[month[0].merge_commit_sha]):
        assert has_answered_since(SYSTEM, begun)
    cloned = time.monotonic()
    with cache.ensure(NAME, commits=[month[0].merge_commit_sha]):
        assert not has_answered_since(SYSTEM, cloned)
