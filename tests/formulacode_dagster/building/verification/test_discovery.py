from __future__ import annotations

import pytest

from formulacode_dagster.building.declarations.tree import Tree
from formulacode_dagster.building.suites.questions import Survey, SurveyedBenchmark
from formulacode_dagster.building.suites.reading import SuiteReading
from formulacode_dagster.building.verification.discovery import benchmarks, without_suite
from formulacode_dagster.building.verification.running import one_benchmark_runs
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind


def surveyed(name: str, **more: object) -> SurveyedBenchmark:
    facts = {"name": name, "module": "b", "owner": "", "attribute": "", "index": 0, "timeout": 1, "cache_folder": ""}
    return SurveyedBenchmark.model_validate({**facts, "outcome": "ran", "seconds": 0.1, **more})


def survey(*names: str, lost: dict[str, str] | None = None, untimed: tuple[str, ...] = ()) -> Survey:
    return Survey(benchmarks=tuple(map(surveyed, names)), lost=lost or {}, extensions=(), untimed=untimed)


READING = SuiteReading({"one": frozenset({"one.time_a", "one.Suite.time_b"}), "two": frozenset({"two.time_c"})})


def test_what_the_files_tell_is_what_is_found() -> None:
    verdict = benchmarks(survey("one.time_a(1)", "one.time_a(2)", "one.Suite.time_b", "two.time_c"), READING)
    assert verdict.ok
    assert verdict.detail == "3 benchmarks, 3 told by reading"


def test_a_shortened_list_fails_although_something_is_left() -> None:
    verdict = benchmarks(survey("one.time_a", "one.Suite.time_b"), READING)
    assert not verdict.ok
    assert "1 are in the files and were not found: two.time_c" in verdict.detail


def test_a_lost_module_or_class_is_named_and_does_not_cost_the_others() -> None:
    lost = {"b.two": "Traceback\nURLError: no network", "b.one.Suite": "ValueError: no data"}
    verdict = benchmarks(survey("one.time_a", lost=lost), READING)
    assert verdict.ok
    assert "b.two lost: URLError: no network" in verdict.detail
    assert "b.one.Suite lost: ValueError: no data" in verdict.detail


def test_a_module_that_was_put_away_is_not_lost() -> None:
    lacking = {"b.two": "Traceback\nModuleNotFoundError: No module named 'scipy'"}
    assert benchmarks(survey("one.time_a", "one.Suite.time_b", lost=lacking), READING).ok
    away = {"b.two": "Traceback\nModuleNotFoundError: No module named 'b.two'"}
    verdict = benchmarks(survey("one.time_a", "one.Suite.time_b", lost=away), READING)
    assert not verdict.ok


def test_more_than_reading_tells_is_reported() -> None:
    verdict = benchmarks(survey("one.time_a", "one.Suite.time_b", "two.time_c", "two.time_made"), READING)
    assert verdict.ok
    assert "1 that reading did not find: two.time_made" in verdict.detail


def test_nothing_left_is_no_pass_and_keeps_the_tracebacks() -> None:
    verdict = benchmarks(survey(lost={"b": "Traceback\nImportError: c"}), READING)
    assert not verdict.ok
    assert verdict.log_tail == "b lost:\nTraceback\nImportError: c"


def test_a_survey_that_broke_off_or_was_killed_is_no_pass() -> None:
    late = ItemFailure(FailureKind.TIMEOUT, "surveying the suite took too long", log_tail="timed out after 420 s")
    for verdict in (benchmarks(late, READING), one_benchmark_runs(late)):
        assert not verdict.ok
        assert verdict.detail == "surveying the suite took too long"
        assert verdict.log_tail == "timed out after 420 s"


def test_benchmarks_that_measure_no_time_count_as_found_and_not_as_run() -> None:
    only = survey(untimed=("one.time_a", "one.Suite.time_b", "two.time_c"))
    assert benchmarks(only, READING).ok
    assert one_benchmark_runs(only).detail == "no benchmark is of a kind that is measured"


def test_discovery_alone_verifies_nothing() -> None:
    """Failure 40, and 39: what was killed gave no time."""
    outcomes = {"skipped": "every benchmark is skipped", "untraced": "there was no time to run one"}
    for outcome, detail in outcomes.items():
        verdict = one_benchmark_runs(Survey(benchmarks=(surveyed("a", outcome=outcome),), lost={}, extensions=()))
        assert (verdict.ok, verdict.detail) == (False, detail)
    killed = surveyed("a", outcome="timeout", message="still running after 60 s")
    assert one_benchmark_runs(Survey(benchmarks=(killed,), lost={}, extensions=())).detail == (
        "a timeout: still running after 60 s"
    )


OFFLINE = "urllib.error.URLError: <urlopen error [Errno -3] Temporary failure in name resolution>"


@pytest.mark.parametrize(
    ("outcomes", "ok"),
    [
        ({"error": OFFLINE}, True),
        ({"error": OFFLINE, "skipped": ""}, True),
        ({"error": OFFLINE, "timeout": "still running after 60 s"}, False),
        ({"error": OFFLINE, "untraced": ""}, False),
        ({"error": "ImportError: no module named numpy"}, False),
    ],
)
def test_a_suite_that_needs_the_network_proves_nothing_against_an_image(outcomes, ok) -> None:
    """As msprime's of 2021, which fetched genetic maps while setting up."""
    benchmarks = tuple(surveyed(name, outcome=name, message=message) for name, message in outcomes.items())
    verdict = one_benchmark_runs(Survey(benchmarks=benchmarks, lost={}, extensions=()))
    assert verdict.ok is ok
    assert ("needs the network" in verdict.detail) is ok


def test_a_time_that_is_none_is_no_time() -> None:
    for seconds in (0.0, float("inf"), float("nan"), -1.0):
        forged = Survey(benchmarks=(surveyed("a", seconds=seconds),), lost={}, extensions=())
        assert not one_benchmark_runs(forged).ok
    assert one_benchmark_runs(survey("a")).ok


@pytest.mark.parametrize(
    ("files", "ok"),
    [
        ({}, True),
        ({"asv.conf.json": b"{}"}, True),
        ({"asv.conf.json": b"[", "benchmarks/bench.py": b""}, True),
        ({"asv.conf.json": b"{}", "benchmarks/bench.py": b""}, False),
    ],
)
def test_an_image_planned_without_a_suite_passes_if_its_commit_has_none(files: dict[str, bytes], ok: bool) -> None:
    class Reader:
        def list(self, _commit: str, _folder: str = "") -> list[str]:
            return sorted(files)

        def read(self, _commit: str, path: str) -> bytes | None:
            return files.get(path)

        def later(self, _commit: str, *_patterns: str) -> tuple[str, ...]:
            return ()

    assert without_suite("benchmarks", Tree(Reader(), "a" * 40)).ok is ok
