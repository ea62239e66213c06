import math
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from formulacode_dagster.engines.protocol import Completed
from formulacode_dagster.measurement.checks import speedup_is_real
from formulacode_dagster.measurement.measure import measure_task
from formulacode_dagster.measurement.plan import SamplingPlan
from formulacode_dagster.measurement.surveyed import Surveyed
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.image import WORKLOADS_FOLDER, EngineName, ResourceLimits
from formulacode_dagster.models.measurement import Arm, Look, Returned, Source, Unit, Verdict
from formulacode_dagster.models.reasons import RejectionReason
from formulacode_dagster.suites.overlays import BASE_SUITE, NO_SUITE, SuiteFiles
from formulacode_dagster.suites.remote import Remote
from formulacode_dagster.workloads.written import Draft
from sandbox.model.benchmarks import write_benchmark

PLAN = SamplingPlan(seconds_per_sample=0.01, max_repeats=0, looks=(Look(units=8, alpha=0.004),))
"""One look, so that a test on a busy machine does not wait for the last."""
FEWEST = PLAN.model_copy(update={"looks": (Look(units=5, alpha=0.05),)})
"""As few rounds as can be significant: for a test of which workloads are timed, not of what noise is called."""
WHERE_NO_SUITE_SERVES = pytest.mark.variant("what is timed where no suite executes the change", most=2)
CORE = """
def total(n):
    result = 0
    for i in range(n):
        result += i
    return result


def double(n):
    return [i * 2 for i in range(n)]


def untouched():
    return 1
"""
FASTER = CORE.replace(
    "    result = 0\n    for i in range(n):\n        result += i\n    return result", "    return n * (n - 1) // 2"
)
BENCH = """
from pkg import core

def time_total():
    core.total(20000)

def time_double():
    core.double(5000)

def time_untouched():
    core.untouched()
"""
FILES = {"pkg/__init__.py": "", "pkg/core.py": CORE, "benchmarks/__init__.py": "", "benchmarks/bench.py": BENCH}


def says(pr, body):
    """*pr* with this text."""
    return pr.model_copy(update={"facts": pr.facts.model_copy(update={"body": body})})


@pytest.fixture
def measure(tmp_path, git_patch, engine_of, image, pull_request):
    """Measure the change of *files* into *after*, in sessions that are copies of a folder."""

    def run(
        after,
        *,
        files=FILES,
        suite=BASE_SUITE,
        later=None,
        patch=None,
        build=None,
        limits=None,
        plan=FEWEST,
        surveyed=None,
        body="",
        writer=None,
        engine=EngineName.PROCESS,
    ):
        source = Path(tempfile.mkdtemp(dir=tmp_path))
        found = git_patch(source, files, after)
        measure.engine = engine_of(source, build)
        spec = (
            image.spec if suite is not NO_SUITE else image.spec.model_copy(update={"benchmark_dir": WORKLOADS_FOLDER})
        )
        timed = measure_task(
            measure.engine,
            image.model_copy(update={"engine": engine, "spec": spec}),
            pr=says(pull_request(*after), body),
            patch=found if patch is None else patch,
            suite=suite,
            later=lambda names: later(names) if later else (),
            plan=plan,
            limits=limits or ResourceLimits(benchmark_seconds=10),
            run_id="run",
            surveyed=surveyed,
            writer=writer,
            progress=measure.progress.append,
        )
        measure.procedure = timed.procedure
        return timed.measurement, timed.log

    measure = run
    measure.progress = []
    return measure


@pytest.mark.slow
def test_a_real_speedup_is_found_over_all_that_the_change_reaches(measure):
    after = {"pkg/core.py": FASTER.replace("for i in range(n)]", "for i in range(n) if True]")}
    files = FILES | {"benchmarks/bench_download.py": "import a_download_that_is_not_there\n"}
    measured, log = measure(after, files=files, plan=PLAN)
    assert measured.is_faster
    assert measured.faster == ("bench.time_total",)
    assert measure.procedure.benchmarks == tuple(result.benchmark for result in measured.results)
    assert measure.procedure.suite_files == SuiteFiles("base")
    assert (measure.procedure.rule, measure.procedure.plan) == (measured.rule, PLAN)
    assert measured.slower == ()
    by_name = {result.benchmark: result.speedup for result in measured.results}
    assert by_name["bench.time_total"] > 5
    # the speed-up is that of all relevant workloads, not of the winner alone
    assert measured.speedup == pytest.approx(math.sqrt(math.prod(by_name.values())))
    # Both functions changed, so both benchmarks were timed; the third runs neither.
    assert {result.benchmark for result in measured.results} == {"bench.time_total", "bench.time_double"}
    assert all(result.executes_change for result in measured.results)
    # most benchmarks return nothing that could be compared
    assert set(measured.returned.values()) == {Returned.NOT_COMPARABLE}
    assert measured.profile.functions["bench.time_total"][0].file == "pkg/core.py"
    assert measured.profile.sources["bench.time_total"] == "def time_total():\n    core.total(20000)\n"
    # a clear effect ends at the first look
    assert (measured.look, measured.rounds, measured.rule.unit) == (0, 8, Unit.PROCESS)
    for result in measured.results:
        for arm in Arm:
            assert sorted(s.round for s in result.samples if s.arm is arm) == list(range(8))
    assert measured.suite == "base"
    # A module that fails at import is reported and takes no other with it (failure 54).
    assert {(f.benchmark, f.kind) for f in measured.failures} == {("benchmarks.bench_download", "import")}
    assert speedup_is_real("2026-02", [measured]).passed
    # Both sides were rebuilt, lest a rebuild looks like the patch's work; the control is a copy. No session is left.
    assert [session.reinstalls for session in measure.engine.sessions] == [1, 1, 0]
    assert not any(session.folder.exists() for session in measure.engine.sessions)
    assert "changed lines: 5 on the base, 2 with the patch" in log
    assert "round 8 of at most 8" in measure.progress


@pytest.mark.slow
def test_what_is_faster_and_returns_something_else_is_told_by_the_benchmarks_name(measure):
    suite = BENCH.replace("    core.", "    return core.")
    after = {"pkg/core.py": FASTER.replace("// 2", "// 2 + 1").replace("i * 2 for", "2 * i for")}
    measured, log = measure(after, files=FILES | {"benchmarks/bench.py": suite})
    assert measured.returned == {"bench.time_total": Returned.DIFFERENT, "bench.time_double": Returned.SAME}
    assert measured.returning_other == ("bench.time_total",)
    assert "bench.time_total returns int and int: different" in log


@pytest.mark.slow
def test_a_refactoring_is_no_speedup(measure):
    measured, _ = measure({"pkg/core.py": CORE.replace("result", "found")}, plan=PLAN)
    assert measured.verdict in {Verdict.UNCHANGED, Verdict.INCONCLUSIVE}
    assert speedup_is_real("2026-02", [measured]).passed


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
def test_a_suite_of_a_later_commit_is_used_when_none_of_the_base_executes_the_change(measure):
    """Most real losses: the benchmark of a change is often written after it."""
    files = FILES | {"benchmarks/bench.py": "from pkg import core\n\ndef time_untouched():\n    core.untouched()\n"}
    asked = []

    def later(names):
        asked.append(names)
        yield SuiteFiles("later commit 1", {"benchmarks/other.py": b"def time_nothing():\n    pass\n"})
        yield SuiteFiles("later commit 2", {"benchmarks/bench.py": BENCH.encode()})

    measured, log = measure({"pkg/core.py": FASTER}, files=files, later=later)
    assert (measured.suite, measured.faster) == ("later commit 2", ("bench.time_total",))
    # What an earlier suite laid down is gone: its benchmarks would be the later one's.
    assert "nothing" not in log.partition("later commit 2")[2]
    assert asked == [{"total", "double", "untouched"}]


@WHERE_NO_SUITE_SERVES
@pytest.mark.slow
def test_tests_of_the_repository_are_timed_when_no_suite_executes_the_change(measure):
    test = "from pkg import core\n\n\ndef test_total():\n    assert core.total(200000)\n"
    files = FILES | {"benchmarks/bench.py": "def time_nothing():\n    pass\n", "tests/test_core.py": test}
    measured, log = measure({"pkg/core.py": FASTER}, files=files)
    assert measured.is_faster
    (result,) = measured.results
    assert result.benchmark == "own_tests.tests_test_core_test_total.time_call('test_total')"
    assert measured.provenance.source is Source.OWN_TESTS
    assert measured.provenance.adapted == ("tests/test_core.py: test_total",)
    assert len(measured.provenance.sha256) == 64
    executed = measured.executed[result.benchmark]
    assert (executed["base"], executed["oracle"]) == ({"pkg/core.py": (3, 4, 5, 6)}, {"pkg/core.py": (3,)})
    assert "1 of its own tests execute the change" in log


@WHERE_NO_SUITE_SERVES
@pytest.mark.slow
def test_tests_are_timed_where_there_is_no_suite_at_all_and_are_fixed_before_anything_is_timed(measure, monkeypatch):
    commands, ask = [], Remote.ask

    def listen(remote, request, **options):
        commands.append(request["command"])
        return ask(remote, request, **options)

    monkeypatch.setattr(Remote, "ask", listen)
    test = "from pkg import core\n\n\ndef test_total():\n    assert core.total(200000)\n"
    files = {"pkg/__init__.py": "", "pkg/core.py": CORE, "tests/test_core.py": test}
    measured, _ = measure({"pkg/core.py": FASTER}, files=files, suite=NO_SUITE)
    chosen, timing = commands[: commands.index("time")], commands[commands.index("time") :]
    assert {"write", "survey"} <= set(chosen)
    assert "write" not in timing
    assert measure.procedure.suite_files.sha256 == measured.provenance.sha256 != ""
    assert (measured.is_faster, measured.provenance.source) == (True, Source.OWN_TESTS)
    assert [result.benchmark for result in measured.results] == [
        "own_tests.tests_test_core_test_total.time_call('test_total')"
    ]


def test_without_a_suite_and_without_anything_else_there_is_no_workload(measure):
    files = {"pkg/__init__.py": "", "pkg/core.py": CORE}
    with pytest.raises(Rejection) as caught:
        measure({"pkg/core.py": FASTER}, files=files, suite=NO_SUITE)
    assert caught.value.reason is RejectionReason.NO_RELEVANT_WORKLOAD


SILENT = FILES | {"benchmarks/bench.py": "def time_nothing():\n    pass\n"}


@WHERE_NO_SUITE_SERVES
@pytest.mark.slow
def test_what_the_authors_wrote_down_is_timed_when_no_suite_and_no_test_executes_the_change(measure):
    body = "It is faster:\n```python\nfrom pkg import core\n%timeit core.total(20000)\n```\n"
    measured, _ = measure({"pkg/core.py": FASTER}, files=SILENT, body=body, engine=EngineName.DOCKER)
    assert measured.is_faster
    assert measured.provenance.source is Source.SNIPPETS
    assert measured.provenance.adapted[0].startswith("pull request")
    assert [result.benchmark for result in measured.results] == ["snippets.Snippet1.time_snippet"]


@WHERE_NO_SUITE_SERVES
@pytest.mark.slow
def test_what_a_model_writes_of_the_base_is_timed_when_nothing_else_executes_the_change(measure):
    class Sandbox:
        name = "sandbox-rules"
        materials = ()

        def draft(self, _instructions, material):
            self.materials = (*self.materials, material)
            return Draft.model_validate_json(write_benchmark(material))

    writer = Sandbox()
    measured, _ = measure({"pkg/core.py": FASTER}, files=SILENT, writer=writer, engine=EngineName.DOCKER)
    assert measured.is_faster
    assert measured.provenance.source is Source.MODEL
    assert measured.provenance.adapted == ("written.py: written by sandbox-rules",)
    assert {result.benchmark.partition("(")[0] for result in measured.results} == {"written.Written.time_total"}
    (material,) = writer.materials
    assert CORE.strip() in material
    # nor what the patch makes of it
    assert "n * (n - 1)" not in material


@pytest.mark.slow
def test_the_first_suites_reason_stands_when_no_later_one_does_better(measure):
    files = FILES | {"benchmarks/bench.py": "from pkg import core\n\ndef time_untouched():\n    core.untouched()\n"}
    with pytest.raises(Rejection) as caught:
        measure({"pkg/core.py": FASTER}, files=files, later=lambda _: [SuiteFiles("later commit 1", {})])
    assert caught.value.reason is RejectionReason.NO_RELEVANT_WORKLOAD
    assert "later commit 1" in caught.value.log


@pytest.mark.slow
def test_a_benchmark_that_hangs_is_a_failure_and_its_process_is_gone(measure, tmp_path):
    hang = f"""
import os, time
from pkg import core

def time_hangs():
    core.total(10)
    open({str(tmp_path / "pids")!r}, "a").write(f"{{os.getpid()}} ")
    time.sleep(100)
time_hangs.timeout = 0.5
"""
    with pytest.raises(ItemFailure) as failure:
        measure({"pkg/core.py": FASTER}, files=FILES | {"benchmarks/bench.py": hang})
    assert failure.value.kind == "benchmarks_fail"
    assert "still running" in failure.value.log_tail
    pids = (tmp_path / "pids").read_text().split()
    assert len(pids) == 2
    assert not any(Path("/proc", pid).exists() for pid in pids)


def test_a_patch_that_no_benchmark_executes_is_rejected(measure):
    with pytest.raises(Rejection) as rejection:
        measure({"pkg/core.py": CORE + "\n\ndef other():\n    return 2\n"})
    assert rejection.value.reason is RejectionReason.NO_RELEVANT_WORKLOAD


@pytest.mark.slow
def test_compiled_code_of_which_coverage_tells_nothing_is_not_timed(measure):
    """Nothing compiles it here: as for another language, or another compiler than gcc."""
    files = FILES | {"pkg/fast.rs": "fn one() -> i32 { 1 }\n"}
    with pytest.raises(ItemFailure) as failure:
        measure({"pkg/fast.rs": "fn one() -> i32 { 2 }\n"}, files=files)
    assert failure.value.kind == "relevance_unknown"
    assert "a build with gcc's coverage does not tell of pkg/fast.rs" in str(failure.value)
    assert "coverage of the oracle tells of no changed file" in failure.value.log
    assert not any(line.startswith("round") for line in measure.progress)
    # three arms, two built with coverage, two in which tests were looked for
    assert len(measure.engine.sessions) == 7
    assert not any(session.folder.exists() for session in measure.engine.sessions)


@pytest.mark.slow
def test_where_a_build_with_coverage_fails_relevance_is_unknown(measure):
    builds = []

    def build(_repository):
        builds.append(1)
        return Completed(len(builds) > 3, b"", b"no coverage here", 0.1)

    with pytest.raises(ItemFailure) as failure:
        measure({"pkg/fast.c": "int b;\n"}, files=FILES | {"pkg/fast.c": "int a;\n"}, build=build)
    assert failure.value.kind == "relevance_unknown"
    assert "the base does not build with coverage" in failure.value.log
    assert "no coverage here" in failure.value.log


@pytest.mark.slow
def test_a_survey_that_ran_out_of_time_goes_on_where_it_stopped(measure, tmp_path):
    """Each benchmark sleeps longer than a survey may take: one is run an attempt, and none of them twice."""
    bench = "import os, time\nfrom pkg import core\n\n"
    # no benchmark says whom it calls, or that would come first
    for name, call in (("a", "1"), ("b", "getattr(core, 'to' 'tal')(20000)")):
        note = f"open({str(tmp_path / 'ran')!r}, 'a').write(f'{name}{{os.getpid()}} ')"
        bench += f"def setup_{name}(): {note}; time.sleep(0.12)\n\ndef time_{name}(): {call}\n"
        bench += f"time_{name}.setup = setup_{name}\n\n"
    kept = {}

    def attempt():
        plan = FEWEST.model_copy(update={"max_survey_seconds": 0.1})
        surveyed = Surveyed(dict(kept), kept.__setitem__)
        files = FILES | {"benchmarks/bench.py": bench}
        return measure({"pkg/core.py": FASTER}, files=files, plan=plan, surveyed=surveyed)[0]

    with pytest.raises(ItemFailure) as failure:
        attempt()
    assert failure.value.kind == "survey_unfinished"
    assert "goes on where this one stopped" in failure.value.remedy
    assert list(kept.values()) == [{"bench.time_a"}]
    assert [result.benchmark for result in attempt().results] == ["bench.time_b"]
    # one process a side
    processes = set((tmp_path / "ran").read_text().split())
    assert sum(process.startswith("a") for process in processes) == 2


def test_an_oracle_that_does_not_apply_is_a_failure(measure):
    patch = b"--- a/pkg/core.py\n+++ b/pkg/core.py\n@@ -1,1 +1,1 @@\n-not what is there\n+new\n"
    with pytest.raises(ItemFailure) as failure:
        measure({"pkg/core.py": FASTER}, patch=patch)
    assert failure.value.kind == "oracle_does_not_apply"
    assert "pkg/core.py" in failure.value.log_tail


def compiled(repository):
    """A build that fails on code that cannot be compiled."""
    done = subprocess.run([sys.executable, "-m", "compileall", "-q", "pkg"], cwd=repository, capture_output=True)
    return Completed(done.returncode, done.stdout, done.stderr, 0.1)


def test_an_oracle_that_does_not_build_is_a_failure_with_the_log(measure):
    with pytest.raises(ItemFailure) as failure:
        measure({"pkg/core.py": "def total(:\n"}, build=compiled)
    assert failure.value.kind == "oracle_does_not_build"
    assert "SyntaxError" in failure.value.log_tail


def test_a_rebuild_that_takes_too_long_is_a_timeout(measure):
    with pytest.raises(ItemFailure) as failure:
        measure({"pkg/core.py": FASTER}, build=lambda _: Completed(-9, b"half way", b"", 3.0, timed_out=True))
    assert failure.value.kind == "timeout"
    assert "half way" in failure.value.log_tail


def test_a_base_that_cannot_be_built_again_is_not_blamed_on_the_oracle(measure):
    with pytest.raises(ItemFailure) as failure:
        measure({"pkg/core.py": FASTER}, build=lambda _: Completed(1, b"", b"no compiler", 3.0))
    assert failure.value.kind == "base_does_not_build"


def test_an_oracle_that_breaks_a_benchmark_is_a_failure(measure):
    with pytest.raises(ItemFailure) as failure:
        measure({"pkg/core.py": CORE.replace("return result", "raise RuntimeError('broken')")})
    assert failure.value.kind == "oracle_breaks_benchmarks"
    assert "broken" in failure.value.log_tail
    assert "bench.time_total" in str(failure.value)


def test_a_suite_that_cannot_be_imported_is_a_failure_and_no_rejection(measure):
    with pytest.raises(ItemFailure) as failure:
        measure({"pkg/core.py": FASTER}, files=FILES | {"benchmarks/bench.py": "1 / 0\n"})
    assert failure.value.kind == "benchmarks_fail"
    assert "ZeroDivisionError" in failure.value.log_tail
