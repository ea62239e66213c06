"""A task measured from its patch to its verdict, in copies of a folder."""

import math
from contextlib import contextmanager
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.callgrind import Callgrind
from formulacode_dagster.building.suites.overlays import SuiteFiles
from formulacode_dagster.building.suites.questions import KeptBuild
from formulacode_dagster.building.suites.remote import HarnessClient
from formulacode_dagster.measuring.measurement.checks import speedup_is_real
from formulacode_dagster.measuring.measurement.cores import Cores
from formulacode_dagster.models.errors import OutsideSystemError, Rejection
from formulacode_dagster.models.measurement import Arm, InstructionCount, RandomizationUnit, Returned, Verdict
from formulacode_dagster.models.reasons import RejectionReason
from tests.support.small_measurement import BENCH, CORE, FASTER, FEWEST, FILES, PLAN


@pytest.mark.slow
def test_a_real_speedup_is_found_over_all_that_the_change_reaches(measure):
    # each benchmark clearly faster: one that stays as it is may seem slower while others use the machine
    after = {"pkg/core.py": FASTER.replace("[i * 2 for i in range(n)]", "[*range(0, n * 2, 2)]")}
    files = FILES | {"benchmarks/bench_download.py": "import a_download_that_is_not_there\n"}
    measured, log = measure(after, files=files, plan=PLAN)
    assert measured.is_faster
    assert set(measured.faster) == {"bench.time_total", "bench.time_double"}
    assert measure.procedure.benchmarks == tuple(result.benchmark for result in measured.results)
    assert measure.procedure.suite_files == SuiteFiles("base")
    assert (measure.procedure.rule, measure.procedure.plan) == (measured.rule, PLAN)
    assert measured.slower == ()
    by_name = {result.benchmark: result.speedup for result in measured.results}
    assert by_name["bench.time_total"] > 5
    # the speed-up is that of all relevant workloads, not only of the winner
    assert measured.speedup == pytest.approx(math.sqrt(math.prod(by_name.values())))
    # Both functions changed, so both benchmarks were timed; the third runs neither.
    assert {result.benchmark for result in measured.results} == {"bench.time_total", "bench.time_double"}
    assert all(result.executes_change for result in measured.results)
    # most benchmarks return nothing that could be compared
    assert set(measured.returned.values()) == {Returned.NOT_COMPARABLE}
    assert measured.profile.functions["bench.time_total"][0].file == "pkg/core.py"
    assert measured.profile.sources["bench.time_total"] == "def time_total():\n    core.total(20000)\n"
    # a clear effect ends at the first look
    assert (measured.look, measured.rounds, measured.rule.unit) == (0, 8, RandomizationUnit.PROCESS)
    for result in measured.results:
        for arm in Arm:
            assert sorted(s.round for s in result.samples if s.arm is arm) == list(range(8))
    assert measured.suite == "base"
    # A module that fails at import is reported and takes no other with it (failure 54).
    assert {(f.benchmark, f.kind) for f in measured.failures} == {("benchmarks.bench_download", "import")}
    assert speedup_is_real("2026-02", [measured]).passed
    assert all(share > 0.5 for share in measured.time_in_change.values())
    assert (len(measured.time_in_change), measured.reached, measured.unreached) == (2, 1.0, ())
    # Both sides were rebuilt, lest a rebuild looks like the patch's work; the control is a copy. No session is left.
    assert [session.reinstalls for session in measure.engine.sessions] == [1, 1, 0]
    assert not any(session.folder.exists() for session in measure.engine.sessions)
    assert "changed lines: 5 on the base, 2 with the patch" in log
    assert "round 8 of at most 8" in measure.progress


@pytest.mark.slow
def test_instructions_of_what_is_faster_are_counted_on_both_sides(measure):
    counting = FEWEST.model_copy(update={"instructions_share": 60.0})
    measured, log = measure({"pkg/core.py": FASTER}, plan=counting)
    count = measured.instructions["bench.time_total"]
    assert count.base > 100 * count.oracle
    assert measured.instructions_ratio == pytest.approx(count.ratio)
    assert f"instructions of bench.time_total: {count.base}, {count.oracle} with the patch" in log


@pytest.mark.slow
def test_what_is_not_counted_has_a_reason(measure, monkeypatch):
    monkeypatch.setattr(Callgrind, "find", lambda: None)
    counting = FEWEST.model_copy(update={"instructions_share": 60.0})
    measured, _ = measure({"pkg/core.py": FASTER}, plan=counting)
    assert measured.instructions == {"bench.time_total": InstructionCount(not_counted="valgrind is not installed")}
    assert (measured.instructions_ratio, measured.time_and_work_disagree) == (None, False)


@pytest.mark.slow
def test_a_faster_patch_with_another_result_names_the_benchmark(measure):
    suite = BENCH.replace("    core.", "    return core.")
    after = {"pkg/core.py": FASTER.replace("// 2", "// 2 + 1").replace("i * 2 for", "2 * i for")}
    measured, log = measure(after, files=FILES | {"benchmarks/bench.py": suite})
    assert measured.returned == {"bench.time_total": Returned.DIFFERENT, "bench.time_double": Returned.SAME}
    assert measured.returning_other == ("bench.time_total",)
    assert "bench.time_total returns int and int: different" in log


@pytest.mark.slow
def test_arms_build_in_the_turn_of_builds_and_are_timed_in_a_later_one(measure):
    turns = []

    def turn(name):
        @contextmanager
        def taken():
            turns.append(f"{name}, {sum(session.reinstalls for session in measure.engine.sessions)} built")
            yield
            turns.append(f"{name} ends, {sum(session.reinstalls for session in measure.engine.sessions)} built")

        return taken

    measure({"pkg/core.py": FASTER}, cores=Cores(turn=turn("timing"), building=turn("building")))
    assert turns == ["building, 0 built", "building ends, 2 built", "timing, 2 built", "timing ends, 2 built"]


@pytest.mark.slow
@pytest.mark.variant("objects that a build makes", most=1)
@pytest.mark.parametrize(
    ("objects_by", "unit", "reinstalls"),
    [
        pytest.param("-O", RandomizationUnit.BUILD, [6, 6, 5], id="other objects"),
        pytest.param("name", RandomizationUnit.PROCESS, [1, 1, 0], id="the same objects"),
        pytest.param("", RandomizationUnit.PROCESS, [1, 1, 0], id="no shared objects"),
    ],
)
def test_the_unit_is_the_build_if_a_changed_setup_makes_other_objects(
    measure, monkeypatch, objects_by, unit, reinstalls
):
    def keep_build(remote):
        session = remote._session
        lines = Path(session.repository, "setup.py").read_text().splitlines()
        made = [line for line in lines if objects_by and line.startswith(objects_by)]
        # each build has a layout of its own
        return KeptBuild(
            objects=f"{made} {session.reinstalls if unit is RandomizationUnit.BUILD else ''}" if made else ""
        )

    monkeypatch.setattr(HarnessClient, "keep_build", keep_build)
    monkeypatch.setattr(HarnessClient, "linkers", lambda *_, **__: "")
    files = FILES | {"setup.py": "name = 1\n-O2\n"}
    measured, _ = measure({"pkg/core.py": FASTER, "setup.py": "name = 1\n-O3\n"}, files=files)
    assert (measured.rule.unit, measured.faster) == (unit, ("bench.time_total",))
    assert [session.reinstalls for session in measure.engine.sessions] == reinstalls


@pytest.mark.slow
@pytest.mark.variant("what breaks off after samples", most=1)
@pytest.mark.parametrize("broken", ["compare_returned", "profile_base"])
def test_samples_are_given_out_when_what_comes_after_them_breaks_off(measure, monkeypatch, broken):
    def gone(*_):
        raise OutsideSystemError("docker", "the daemon is gone")

    monkeypatch.setattr(f"formulacode_dagster.measuring.measurement.measure.{broken}", gone)
    kept = []
    after = {"pkg/core.py": FASTER.replace("[i * 2 for i in range(n)]", "[*range(0, n * 2, 2)]")}
    with pytest.raises(OutsideSystemError):
        measure(after, keep=kept.append)
    (timed,) = kept
    assert (timed.measurement.verdict, timed.measurement.returned) == (Verdict.FASTER, {})
    assert timed.procedure.benchmarks == tuple(result.benchmark for result in timed.measurement.results)
    assert "5 rounds" in timed.log


@pytest.mark.slow
def test_the_row_counts_the_relevant_benchmarks_that_were_not_drawn(measure):
    after = {"pkg/core.py": FASTER.replace("[i * 2 for i in range(n)]", "[*range(0, n * 2, 2)]")}
    measured, _ = measure(after, plan=FEWEST.model_copy(update={"max_benchmarks": 1}))
    assert (len(measured.results), measured.undrawn, measured.unsurveyed) == (1, 1, 0)


@pytest.mark.slow
def test_a_refactoring_is_no_speedup(measure):
    measured, _ = measure({"pkg/core.py": CORE.replace("result", "found")}, plan=PLAN)
    assert measured.verdict in {Verdict.UNCHANGED, Verdict.INCONCLUSIVE, Verdict.SLOWER}, "slower: by chance"
    assert speedup_is_real("2026-02", [measured]).passed


@pytest.mark.slow
def test_a_benchmark_that_hardly_runs_the_change_says_nothing_of_it(measure):
    bench = "from pkg import core\n\ndef time_all():\n    core.total(20000)\n    core.untouched()\n"
    after = {"pkg/core.py": CORE.replace("return 1", "return 2 - 1") + "\n\ndef fresh():\n    return 3\n"}
    measured, log = measure(after, files=FILES | {"benchmarks/bench.py": bench}, plan=PLAN)
    assert measured.time_in_change["bench.time_all"] < 0.03
    assert measured.is_weakly_aimed or measured.verdict is Verdict.INCONCLUSIVE
    assert (measured.reached, measured.unreached) == (0.5, ("pkg/core.py:fresh",))
    assert "nothing is aimed better than the suite of the base" in log


@pytest.mark.slow
def test_one_winner_among_losers_is_a_trade_off(measure):
    slower = FASTER.replace("[i * 2 for i in range(n)]", "[int(str(i)) * 2 for i in range(n) if str(i) != '']")
    measured, _ = measure({"pkg/core.py": slower}, plan=PLAN)
    assert measured.verdict is Verdict.TRADE_OFF
    assert (measured.faster, measured.slower) == (("bench.time_total",), ("bench.time_double",))


@pytest.mark.slow
def test_benchmarks_of_the_pull_request_itself_are_used_on_both_sides(measure):
    """Failure 47: the base has no benchmark of its own for what the PR speeds up."""
    files = FILES | {"benchmarks/bench.py": "def time_nothing():\n    pass\n"}
    new = {
        "benchmarks/bench.py": "from pkg import core\n\ndef time_total():\n    core.total(20000)\n\n"
        "def time_new():\n    core.brand_new()\n"
    }
    after = {"pkg/core.py": FASTER + "\n\ndef brand_new():\n    return total(3)\n", **new}
    overlay = {path: text.encode() for path, text in new.items()}
    measured, _ = measure(after, files=files, suite=SuiteFiles("merge commit", overlay))
    assert measured.suite == "merge commit"
    assert measured.faster == ("bench.time_total",)
    assert [(f.benchmark, f.arm, f.kind) for f in measured.failures] == [("bench.time_new", Arm.BASE, "error")]


@pytest.mark.slow
def test_a_later_commits_suite_is_used_if_none_executes_the_change(measure):
    """Most real losses: the benchmark of a change is often written after it."""
    files = FILES | {"benchmarks/bench.py": "from pkg import core\n\ndef time_untouched():\n    core.untouched()\n"}
    asked = []

    def later(names):
        asked.append(names)
        yield SuiteFiles("later commit 1", {"benchmarks/other.py": b"def time_nothing():\n    pass\n"})
        yield SuiteFiles("later commit 2", {"benchmarks/bench.py": BENCH.encode()})

    measured, log = measure({"pkg/core.py": FASTER}, files=files, later=later)
    assert (measured.suite, measured.faster) == ("later commit 2", ("bench.time_total",))
    # The earlier suite's files are gone: its benchmarks would count for the later one.
    assert "nothing" not in log.partition("later commit 2")[2]
    assert asked == [{"total", "double", "untouched"}]


@pytest.mark.slow
def test_the_first_suites_reason_stands_when_no_later_one_does_better(measure):
    files = FILES | {"benchmarks/bench.py": "from pkg import core\n\ndef time_untouched():\n    core.untouched()\n"}
    with pytest.raises(Rejection) as caught:
        measure({"pkg/core.py": FASTER}, files=files, later=lambda _: [SuiteFiles("later commit 1", {})])
    assert caught.value.reason is RejectionReason.NO_RELEVANT_WORKLOAD
    assert "later commit 1" in caught.value.log
