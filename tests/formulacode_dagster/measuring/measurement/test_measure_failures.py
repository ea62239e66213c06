"""Tasks that cannot be measured, and the cause."""

import subprocess
import sys
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.measuring.measurement.surveyed import Surveyed
from formulacode_dagster.models.errors import ItemFailure, Rejection
from formulacode_dagster.models.reasons import RejectionReason
from tests.support.small_measurement import CORE, FASTER, FEWEST, FILES


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
    assert len(pids) == 1, "what hangs at the base does not run with the patch"
    assert not any(Path("/proc", pid).exists() for pid in pids)


@pytest.mark.slow
def test_a_patch_that_no_benchmark_executes_is_rejected(measure):
    with pytest.raises(Rejection) as rejection:
        measure({"pkg/core.py": CORE + "\n\ndef other():\n    return 2\n"})
    assert rejection.value.reason is RejectionReason.NO_RELEVANT_WORKLOAD


@pytest.mark.slow
def test_compiled_code_of_which_coverage_tells_nothing_is_not_timed(measure):
    """Nothing compiles it here: as for a language or a compiler without coverage."""
    files = FILES | {"pkg/fast.rs": "fn one() -> i32 { 1 }\n"}
    with pytest.raises(ItemFailure) as failure:
        measure({"pkg/fast.rs": "fn one() -> i32 { 2 }\n"}, files=files)
    assert failure.value.kind == "relevance_unknown"
    assert "a build with coverage does not cover pkg/fast.rs" in str(failure.value)
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
    """Each benchmark sleeps longer than a survey may take: one is run a survey, and none of them twice."""
    bench = "import os, time\nfrom pkg import core\n\n"
    # no benchmark says whom it calls, or that would come first
    for name, call in (("a", "1"), ("b", "getattr(core, 'to' 'tal')(20000)")):
        note = f"open({str(tmp_path / 'ran')!r}, 'a').write(f'{name}{{os.getpid()}} ')"
        bench += f"def setup_{name}(): {note}; time.sleep(0.12)\n\ndef time_{name}(): {call}\n"
        bench += f"time_{name}.setup = setup_{name}\n\n"
    kept = {}
    plan = FEWEST.model_copy(update={"max_survey_seconds": 0.1})
    surveyed, files = Surveyed({}, kept.__setitem__), FILES | {"benchmarks/bench.py": bench}
    measured, *_ = measure({"pkg/core.py": FASTER}, files=files, plan=plan, surveyed=surveyed)
    assert [result.benchmark for result in measured.results] == ["bench.time_b"]
    assert list(kept.values()) == [{"bench.time_a"}], "another attempt would not run it again"
    processes = set((tmp_path / "ran").read_text().split())
    assert sum(process.startswith("a") for process in processes) == 1, "it does not enter the change at the base"


def test_an_oracle_that_does_not_apply_is_a_failure(measure):
    patch = b"--- a/pkg/core.py\n+++ b/pkg/core.py\n@@ -1,1 +1,1 @@\n-not what is there\n+new\n"
    with pytest.raises(ItemFailure) as failure:
        measure({"pkg/core.py": FASTER}, patch=patch)
    assert failure.value.kind == "oracle_does_not_apply"
    assert "pkg/core.py" in failure.value.log_tail


def compiled(repository):
    """A build that fails on code that cannot be compiled."""
    done = subprocess.run([sys.executable, "-m", "compileall", "-qf", "pkg"], cwd=repository, capture_output=True)
    return Completed(done.returncode, done.stdout, done.stderr, 0.1)


@pytest.mark.slow
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


@pytest.mark.slow
def test_an_oracle_that_breaks_a_benchmark_is_a_failure(measure):
    with pytest.raises(ItemFailure) as failure:
        measure({"pkg/core.py": CORE.replace("return result", "raise RuntimeError('broken')")})
    assert failure.value.kind == "oracle_breaks_benchmarks"
    assert "broken" in failure.value.log_tail
    assert "bench.time_total" in str(failure.value)


@pytest.mark.slow
def test_a_suite_that_cannot_be_imported_is_a_failure_and_no_rejection(measure):
    with pytest.raises(ItemFailure) as failure:
        measure({"pkg/core.py": FASTER}, files=FILES | {"benchmarks/bench.py": "1 / 0\n"})
    assert failure.value.kind == "benchmarks_fail"
    assert "ZeroDivisionError" in failure.value.log_tail
