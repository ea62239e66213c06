"""Suites of other commits, over a repository with a history."""

from __future__ import annotations

import pytest

from formulacode_dagster.measuring.workloads.commits import MOST_LATER, earlier_suites, later_suites
from formulacode_dagster.measuring.workloads.documents import shown_at
from formulacode_dagster.measuring.workloads.suites import other_suites
from formulacode_dagster.models.measurement import Source
from formulacode_dagster.sources.git.mirror import Mirror
from tests.records import make_spec

from .conftest import TOTAL

UNTOUCHED = "from pkg import core\n\n\ndef time_untouched():\n    core.untouched()\n"
OF_TOTAL = UNTOUCHED + "\n\ndef time_total():\n    core.total(10)\n"
NAMES = {"total", "grand_total", "untouched"}


def later(place, names=NAMES):
    return list(later_suites(place.mirror, place.pr, "benchmarks", names))


def earlier(place, names=NAMES):
    return list(earlier_suites(place.mirror, place.pr, "benchmarks", names))


def texts(suites):
    return [suite.files["benchmarks/bench.py"].decode() for suite in suites]


@pytest.mark.slow
def test_a_benchmark_that_is_written_after_the_change_executes_it(world):
    place = world(base=UNTOUCHED, after=(UNTOUCHED + "\n# still nothing\n", OF_TOTAL))
    (suite,) = later(place)
    assert place.executed(suite) == {"bench.time_untouched": frozenset(), "bench.time_total": TOTAL}
    assert suite.provenance.source is Source.LATER_SUITE
    assert suite.provenance.commit == place.mirror.later(place.pr.facts.merge_commit_sha, "benchmarks/**")[1]


def test_the_nearest_come_first_and_no_more_than_so_many(world):
    names = [f"function_{number}" for number in range(MOST_LATER + 2)]
    after = tuple(" + ".join(["# ", *names[: place + 1]]) for place in range(len(names)))
    assert texts(later(world(base="", after=after), set(names))) == list(after[:MOST_LATER])


@pytest.mark.slow
def test_the_newest_is_tried_for_a_benchmark_with_an_indirect_call(world):
    other = "from pkg import core\n\n\ndef time_sum():\n    getattr(core, 'total'.lower())(3)\n"
    place = world(base=OF_TOTAL.replace("time_total", "total_unused"), after=("# nothing", other, other + "# newest"))
    (suite,) = later(place)
    assert texts([suite]) == [other + "# newest"]
    assert place.executed(suite) == {"bench.time_sum": TOTAL}


def test_the_newest_is_the_newest_of_all(world, monkeypatch):
    monkeypatch.setattr("formulacode_dagster.measuring.workloads.commits.MOST_LATER_COMMITS", 1)
    newest = "from pkg import core\n\n\ndef time_sum():\n    getattr(core, 'total'.lower())(3)\n"
    place = world(base=OF_TOTAL, after=("# nothing", "# nothing yet", newest))
    assert texts(later(place)) == [newest]


def test_what_the_suite_speaks_of_already_calls_for_no_later_one(world):
    assert later(world(base=OF_TOTAL, after=(OF_TOTAL + "# faster", OF_TOTAL.replace("10", "20")))) == []


@pytest.mark.slow
def test_a_benchmark_that_was_dropped_before_the_change_executes_it(world):
    place = world(before=("# none yet", OF_TOTAL + "# oldest", OF_TOTAL, UNTOUCHED), base=UNTOUCHED + "# base")
    (suite,) = earlier(place)
    assert texts([suite]) == [OF_TOTAL]
    assert place.executed(suite) == {"bench.time_untouched": frozenset(), "bench.time_total": TOTAL}
    assert suite.provenance.source is Source.EARLIER_SUITE


def test_an_earlier_suite_that_spoke_of_nothing_else_is_left_alone(world):
    assert earlier(world(before=(OF_TOTAL + "# older",), base=OF_TOTAL)) == []
    assert earlier(world(before=("# nothing",), base=UNTOUCHED), {"total"}) == []


def test_what_is_read_of_a_commit_is_fetched_together_and_so_are_commits(world, monkeypatch):
    place = world(
        before=(OF_TOTAL, UNTOUCHED), base=UNTOUCHED + "# base", merged=UNTOUCHED, after=("# a", "# b", "# c")
    )
    calls, read = [], Mirror.read

    def read_at_hand(mirror, commit, path):
        assert any(commit in commits for commits in calls), path
        return read(mirror, commit, path)

    monkeypatch.setattr(Mirror, "complete", lambda _mirror, *commits, **_: calls.append(commits))
    monkeypatch.setattr(Mirror, "read", read_at_hand)
    list(other_suites(place.mirror, place.pr, make_spec(benchmark_dir="benchmarks"), NAMES))
    later = place.mirror.later(place.pr.facts.merge_commit_sha, "benchmarks/**")
    assert later in calls
    calls.clear()
    shown_at(place.mirror, place.pr.change.base_sha, NAMES, benchmark_dir="benchmarks")
    assert calls == [(place.pr.change.base_sha,)]
