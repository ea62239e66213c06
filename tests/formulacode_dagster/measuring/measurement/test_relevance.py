import pytest

from formulacode_dagster.building.suites.questions import Survey, SurveyedBenchmark
from formulacode_dagster.measuring.measurement.changed_code import ChangedCode, TracedFunction
from formulacode_dagster.measuring.measurement.profile import reached_by
from formulacode_dagster.measuring.measurement.relevance import (
    BenchmarkCandidate,
    UntimedCounts,
    comparable,
    completed,
    disagreeing,
    joined,
    may_enter,
    renewed,
    select,
    with_lines,
    with_rest,
    with_surveys,
)
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.measurement import Arm
from formulacode_dagster.models.reasons import RejectionReason

HIT = {"src/pkg/core.py": (7,)}
CHANGED = ChangedCode({"src/pkg/core.py": frozenset({7})}, {}, ())
COMPILED = ChangedCode({}, {}, ("src/fast.c",))


def surveyed(attribute, index=0, **changes):
    fields = {
        "name": f"bench.{attribute}({index})",
        "module": "benchmarks.bench",
        "owner": "",
        "attribute": attribute,
        "index": index,
        "timeout": 10.0,
        "cache_folder": "",
        "outcome": "ran",
        "traceable": True,
    }
    return SurveyedBenchmark.model_validate(fields | changes)


def survey(*benchmarks, lost=None):
    return Survey(benchmarks=benchmarks, lost=lost or {}, extensions=())


def names(candidates):
    return [candidate.name for candidate in candidates]


def test_code_that_only_the_oracle_runs_counts():
    (candidate,), _ = comparable(survey(surveyed("time_it")), survey(surveyed("time_it", lines=HIT)), CHANGED)
    assert candidate.executes_change is True


@pytest.mark.parametrize(
    ("changes", "may"),
    [
        ({"lines": HIT}, True),
        ({}, False),
        ({"traceable": False}, True),
        ({"outcome": "error"}, True),
        ({"outcome": "timeout"}, False),
        ({"outcome": "untraced"}, False),
    ],
)
def test_what_may_enter_the_change_runs_with_the_patch(changes, may):
    assert may_enter(surveyed("time_it", **changes)) is may


def test_what_does_not_enter_the_change_is_ruled_out_with_the_patch():
    hit, gone = (surveyed(name, lines=HIT) for name in ("time_hit", "time_gone"))
    base = joined([survey(surveyed("time_miss"), gone), survey(surveyed("time_late", outcome="untraced"), hit)])
    oracle = with_rest(survey(hit), base, [hit.name, gone.name])
    candidates, failures = comparable(base, oracle, CHANGED)
    assert {each.name: each.executes_change for each in candidates} == {
        "bench.time_hit(0)": True,
        "bench.time_late(0)": None,
        "bench.time_miss(0)": False,
    }
    assert [(failure.benchmark, failure.kind) for failure in failures] == [("bench.time_gone(0)", "missing")]


def test_entries_that_did_not_change_are_no_lines_of_the_change():
    entering = survey(surveyed("time_it", lines={"src/pkg/core.py": (6, 7), "src/pkg/more.py": (1,)}))
    assert with_lines(entering, CHANGED.base).benchmarks[0].lines == HIT


def test_only_benchmarks_that_execute_the_change_are_selected():
    both = survey(surveyed("time_hit", lines=HIT), surveyed("time_miss"), surveyed("timeraw_x", traceable=False))
    candidates, _ = comparable(both, both, CHANGED)
    assert names(select(candidates, limit=10, seed=0)) == ["bench.time_hit(0)"]


def test_when_none_executes_the_change_the_task_is_rejected():
    both = survey(surveyed("time_miss"))
    candidates, _ = comparable(both, both, CHANGED)
    with pytest.raises(Rejection) as rejection:
        select(candidates, limit=10, seed=0)
    assert rejection.value.reason is RejectionReason.NO_RELEVANT_WORKLOAD


@pytest.mark.parametrize(
    ("ran", "changed", "why"),
    [
        (surveyed("time_a"), COMPILED, "Python cannot trace src/fast.c"),
        (surveyed("timeraw_a", traceable=False), CHANGED, "it runs its code in a process of its own"),
    ],
)
def test_a_benchmark_of_which_nobody_can_tell_is_not_timed(ran, changed, why):
    both = survey(ran, surveyed("time_b", outcome="skipped"))
    candidates, _ = comparable(both, both, changed)
    assert [candidate.executes_change for candidate in candidates] == [None]
    with pytest.raises(ItemFailure) as failure:
        select(candidates, limit=10, seed=0)
    assert failure.value.kind == "relevance_unknown"
    assert why in str(failure.value)
    assert ran.name in failure.value.log_tail


def test_a_survey_without_time_for_all_of_them_says_so():
    both = survey(surveyed("time_a"), surveyed("time_b", outcome="untraced", traceable=False))
    candidates, _ = comparable(both, both, CHANGED)
    assert [candidate.executes_change for candidate in candidates] == [False, None]
    with pytest.raises(ItemFailure) as failure:
        select(candidates, limit=10, seed=0)
    assert failure.value.kind == "survey_unfinished"
    assert "no time to run 1 of 2 benchmarks" in str(failure.value)


def test_benchmarks_neither_run_nor_drawn_are_counted():
    both = survey(
        *(surveyed("time_hit", n, lines=HIT) for n in range(5)),
        surveyed("time_miss"),
        surveyed("time_late", outcome="untraced", traceable=False),
    )
    candidates, _ = comparable(both, both, CHANGED)
    left_out = UntimedCounts.of(candidates, select(candidates, limit=2, seed=0))
    assert left_out == UntimedCounts(unsurveyed=1, undrawn=3)
    assert str(left_out) == "left out: 1 that there was no time to run once, 3 relevant ones that were not drawn"
    assert not str(UntimedCounts.of(candidates[:5], select(candidates[:5], limit=5, seed=0)))


def test_beside_those_known_to_execute_the_change_no_other_is_timed():
    mixed = ChangedCode(CHANGED.base, {}, ("src/fast.c",))
    both = survey(*(surveyed(f"time_{n}") for n in range(5)), surveyed("time_hit", lines=HIT))
    candidates, _ = comparable(both, both, mixed)
    assert names(select(candidates, limit=2, seed=0)) == ["bench.time_hit(0)"]


def test_a_limited_choice_covers_functions_and_depends_on_the_seed():
    both = survey(*(surveyed(name, n, lines=HIT) for name in ("time_a", "time_b") for n in range(20)))
    candidates, _ = comparable(both, both, CHANGED)
    chosen = select(candidates, limit=4, seed=3)
    assert names(chosen) == names(select(candidates, limit=4, seed=3))
    assert sorted(name[:12] for name in names(chosen)) == [
        "bench.time_a",
        "bench.time_a",
        "bench.time_b",
        "bench.time_b",
    ]


@pytest.mark.parametrize("seed", range(5))
def test_where_few_are_timed_these_execute_as_much_of_the_change_as_any_do(seed):
    executed = {"time_a": (1,), "time_b": (1, 2), "time_c": (1, 2, 3), "time_d": (9,), "time_e": (2,)}
    base, oracle = (
        survey(*(surveyed(name, lines={path: lines}) for name, lines in executed.items() if name < last))
        for path, last in (("src/pkg/core.py", "time_f"), ("src/pkg/core.py", "time_d"))
    )
    oracle = survey(*oracle.benchmarks, surveyed("time_d"), surveyed("time_e", lines={"src/pkg/new.py": (4,)}))
    candidates, _ = comparable(base, oracle, CHANGED)
    chosen = [name[6:12] for name in names(select(candidates, limit=3, seed=seed))]
    assert chosen[0] == "time_c"
    assert sorted(chosen[1:]) == ["time_d", "time_e"]
    every = [name[6:12] for name in names(select(candidates, limit=9, seed=seed))]
    assert every[:3] == chosen
    assert sorted(every) == sorted(executed)


def test_a_benchmark_that_the_oracle_breaks_is_a_failure_of_the_task():
    broken = survey(surveyed("time_it", outcome="error", message="KeyError: 1"), surveyed("time_other"))
    with pytest.raises(ItemFailure) as failure:
        comparable(survey(surveyed("time_it"), surveyed("time_other")), broken, CHANGED)
    assert failure.value.kind == "oracle_breaks_benchmarks"
    assert "KeyError: 1" in failure.value.log_tail


def test_a_benchmark_that_is_killed_with_the_patch_is_left_out_if_it_executes_no_change():
    oracle = survey(surveyed("time_it", outcome="killed", message="wait status 9"), surveyed("time_other"))
    candidates, failures = comparable(survey(surveyed("time_it"), surveyed("time_other")), oracle, CHANGED)
    assert (names(candidates), [failure.kind for failure in failures]) == (["bench.time_other(0)"], ["killed"])
    executing = survey(surveyed("time_it", lines={"src/pkg/new.py": (4,)}), surveyed("time_other"))
    with pytest.raises(ItemFailure, match="fail with the author's patch"):
        comparable(executing, oracle, CHANGED)


@pytest.mark.parametrize("lost", ["benchmarks.bench", "benchmarks.bench.time_it"])
def test_a_module_or_class_that_the_oracle_breaks_is_a_failure_of_the_task(lost):
    with pytest.raises(ItemFailure) as failure:
        comparable(survey(surveyed("time_it")), survey(surveyed("time_b"), lost={lost: "ImportError"}), CHANGED)
    assert failure.value.kind == "oracle_breaks_benchmarks"


def test_what_fails_on_the_base_alone_is_reported_and_left_out():
    base = survey(surveyed("time_new", outcome="error", message="no attribute"), surveyed("time_it"))
    candidates, failures = comparable(base, survey(surveyed("time_new"), surveyed("time_it")), CHANGED)
    assert names(candidates) == ["bench.time_it(0)"]
    assert [(f.benchmark, f.arm, f.kind) for f in failures] == [("bench.time_new(0)", Arm.BASE, "error")]


def test_what_exists_on_one_side_only_is_reported():
    _, failures = comparable(survey(surveyed("time_it"), surveyed("time_old")), survey(surveyed("time_it")), CHANGED)
    assert [(f.benchmark, f.arm, f.kind) for f in failures] == [("bench.time_old(0)", Arm.ORACLE, "missing")]


def test_skipped_combinations_are_neither_timed_nor_failures():
    both = survey(surveyed("time_it"), surveyed("time_it", 1, outcome="skipped"))
    candidates, failures = comparable(both, both, CHANGED)
    assert names(candidates) == ["bench.time_it(0)"]
    assert failures == []


def test_when_no_benchmark_runs_the_task_fails():
    both = survey(surveyed("time_it", outcome="timeout", message="still running"), lost={"benchmarks.x": "ImportError"})
    with pytest.raises(ItemFailure) as failure:
        comparable(both, both, CHANGED)
    assert failure.value.kind == "benchmarks_fail"
    assert "still running" in failure.value.log_tail


def test_a_benchmark_that_fails_on_the_control_is_not_timed():
    candidate = BenchmarkCandidate({Arm.BASE: surveyed("time_it"), Arm.ORACLE: surveyed("time_it")}, True)
    seen = with_surveys(candidate, {Arm.CONTROL: survey(surveyed("time_it", outcome="crash"))})
    ready, failures = completed([seen])
    assert ready == []
    assert [(f.arm, f.kind) for f in failures] == [(Arm.CONTROL, "crash")]


def test_one_side_that_needs_fresh_setups_gives_them_to_all():
    candidate = BenchmarkCandidate({Arm.BASE: surveyed("time_it"), Arm.ORACLE: surveyed("time_it", isolate=True)}, True)
    (ready,), _ = completed([with_surveys(candidate, {Arm.CONTROL: survey(surveyed("time_it"))})])
    assert ready.isolate


def test_the_longest_setup_of_an_arm_decides_for_all():
    by_arm = {Arm.BASE: surveyed("time_it", setup_seconds=0.001), Arm.ORACLE: surveyed("time_it", setup_seconds=0.004)}
    assert BenchmarkCandidate(by_arm, True).setup_seconds == 0.004


def test_what_fails_on_one_arm_alone_is_doubtful_on_either():
    base = survey(surveyed("time_a"), surveyed("time_b", outcome="crash"), surveyed("time_c", outcome="error"))
    oracle = survey(surveyed("time_a", outcome="timeout"), surveyed("time_b"), surveyed("time_c", outcome="error"))
    assert disagreeing(base, oracle) == ["bench.time_a(0)", "bench.time_b(0)"]
    lost = survey(lost={"benchmarks.bench": "killed"})
    assert disagreeing(survey(surveyed("time_a")), lost) == ["bench.time_a(0)"]


def test_what_runs_at_the_second_try_is_nobodys_fault():
    base = survey(surveyed("time_a", lines=HIT))
    hiccup = survey(lost={"benchmarks.bench": "killed"})
    with pytest.raises(ItemFailure):
        comparable(base, hiccup, CHANGED)
    candidates, failures = comparable(base, renewed(hiccup, survey(surveyed("time_a", lines=HIT))), CHANGED)
    assert names(candidates) == ["bench.time_a(0)"]
    assert failures == []
    with pytest.raises(ItemFailure) as failure:
        comparable(base, renewed(survey(surveyed("time_a", outcome="crash")), hiccup), CHANGED)
    assert failure.value.kind == "oracle_breaks_benchmarks"


def test_a_copied_control_runs_the_base_except_for_cached_setups():
    candidates, _ = comparable(
        survey(surveyed("a"), surveyed("b", cache_folder="cache")), survey(surveyed("a"), surveyed("b")), CHANGED
    )
    copied = {candidate.name: candidate.with_copied_control().runs_on(Arm.CONTROL) for candidate in candidates}
    assert list(copied.values()) == [True, False]


@pytest.mark.parametrize(
    ("changed", "executed", "share"),
    [(0, [()], None), (2, [(2,)], 0.5), (1, [()], 0.5), (2, [()], 0.3333), (1, [(), (1,)], 1.0)],
)
def test_compiled_code_counts_as_one_function_where_it_is_seen_to_run(changed, executed, share):
    functions = [
        TracedFunction(f"core.py:f{line}", {Arm.BASE: {"core.py": frozenset({line})}}, {})
        for line in range(1, changed + 1)
    ]
    code = ChangedCode({}, {}, ("src/fast.c",), functions=tuple(functions))
    candidates = [
        BenchmarkCandidate({Arm.BASE: surveyed("time_it", lines={"core.py": lines} if lines else {})}, True)
        for lines in executed
    ]
    assert reached_by(candidates, code)[0] == share


@pytest.mark.parametrize(
    ("shares", "is_partly_hidden", "expected"),
    [
        ((0.5, None, 0.01), False, ["time_0", "time_1"]),
        ((0.5, None, None), True, ["time_0"]),
        ((None, None, None), True, ["time_0", "time_1", "time_2"]),
    ],
)
def test_known_time_in_the_change_comes_first_if_some_of_it_is_hidden(shares, is_partly_hidden, expected):
    candidates = [
        BenchmarkCandidate({Arm.BASE: surveyed(f"time_{place}")}, True, time_in_change=share)
        for place, share in enumerate(shares)
    ]
    selected = select(candidates, limit=5, seed=0, is_partly_hidden=is_partly_hidden)
    assert sorted(candidate.by_arm[Arm.BASE].attribute for candidate in selected) == expected
