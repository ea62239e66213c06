"""The whole way through a real image: built by the process engine, patched, rebuilt, timed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
import uv

from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.building.specs.spec import INSTRUMENT
from formulacode_dagster.building.suites.overlays import SuiteFiles
from formulacode_dagster.measuring.measurement.measure import (
    MeasurementSettings,
    TaskToMeasure,
    WorkloadSources,
    measure_task,
)
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.remeasure import measure_again
from formulacode_dagster.models.errors import Rejection
from formulacode_dagster.models.image import BuiltImage, EngineName, ResourceLimits
from formulacode_dagster.models.measurement import (
    Arm,
    InterimAnalysis,
    Measurement,
    Metric,
    RandomizationUnit,
    Source,
    Verdict,
)
from formulacode_dagster.models.reasons import RejectionReason
from tests.records import make_image, make_spec
from tests.support.compiled_packages import (
    C_FILES,
    CYTHON_FILES,
    FAST_CYTHON,
    FAST_PYTHON,
    FAST_RUST,
    RUST_FILES,
    SLOW_PYTHON,
    SLOW_RUST,
)
from tests.support.extension import FAST_C, SLOW_C
from tests.support.git_world import BareRepository

# what its fixtures make is made in one process
pytestmark = [pytest.mark.network, pytest.mark.xdist_group(__name__)]

LIMITS = ResourceLimits(build_seconds=240, benchmark_seconds=20)
PLAN = SamplingPlan(
    instructions_share=0,
    seconds_per_sample=0.02,
    max_benchmarks=4,
    max_repeats=0,
    looks=(InterimAnalysis(units=5, alpha=0.05),),
)
"""Five builds an arm: the fewest that can be significant."""

Measure = Callable[..., Measurement]
Build = Callable[..., tuple[ProcessEngine, BuiltImage]]


@pytest.fixture(scope="module")
def build(tmp_path_factory) -> Build:
    """Builds the image of a repository that holds *files* at its base, with what is required of an index."""
    engine = ProcessEngine(tmp_path_factory.mktemp("engine"), LIMITS)

    def run(files, *required):
        made = BareRepository(tmp_path_factory.mktemp("repository") / "tinyc.git")
        mark = made.add("base", files=files)
        base = made.write()[mark]
        spec = make_spec(
            _locked(tmp_path_factory.mktemp("lock"), required),
            task_id="acme__tinyc-12",
            repository="acme/tinyc",
            base_sha=base,
            anchor_sha=base,
            python="3.11",
            instrument=INSTRUMENT,
            package_name="tinyc",
        )
        outcome = engine.build(spec, Origins(made.path))
        image = make_image(
            month="2026-02",
            repository_id=7,
            number=12,
            engine=EngineName.PROCESS,
            spec=spec,
            tag=outcome.tag,
            digest=outcome.digest,
            location=outcome.location,
            tiers=outcome.tiers,
        )
        return engine, image

    return run


def _locked(folder, required):
    (folder / "in.txt").write_text("\n".join(required))
    command = [uv.find_uv_bin(), "--no-config", "pip", "compile", "--quiet", "--generate-hashes", "in.txt"]
    return subprocess.run(command, cwd=folder, capture_output=True, check=True, text=True).stdout


@pytest.fixture(scope="module")
def with_c(build):
    """Engine, image and files of the repository with C."""
    return *build(C_FILES, "setuptools==75.3.0"), C_FILES


@pytest.fixture(scope="module")
def with_cython(build):
    """The same with Cython."""
    return *build(CYTHON_FILES, "setuptools==75.3.0", "cython==3.0.11"), CYTHON_FILES


@pytest.fixture(scope="module")
def with_rust(build):
    """The same with Rust."""
    return *build(RUST_FILES, "setuptools==75.3.0"), RUST_FILES


@pytest.fixture
def measure(tmp_path, git_patch, pull_request) -> Measure:
    def run(built, after, body="", plan=PLAN):
        engine, image, files = built
        patch = git_patch(tmp_path / "source", files, after)
        pr = pull_request(*after)
        if body:
            # of folders, only the repository's own code is run
            image = image.model_copy(update={"engine": EngineName.DOCKER})
            pr = pr.model_copy(update={"facts": pr.facts.model_copy(update={"body": body})})
        task, workloads = TaskToMeasure(pr, patch, image, "run"), WorkloadSources(SuiteFiles("base"))
        measured = measure_task(engine, task, workloads, MeasurementSettings(plan, LIMITS))
        run.log, run.procedure, run.patch = measured.log, measured.procedure, patch
        return measured.measurement

    (tmp_path / "source").mkdir()
    return run


def of_image(case: str) -> pytest.MarkDecorator:
    """Mark a test of *case*: a run takes those of one, for which one image is built."""
    return pytest.mark.variant("what is measured in an image", most=1, case=case)


@of_image("faster C")
def test_a_faster_c_extension_is_rebuilt_and_measured_faster_twice(measure, with_c):
    """Failure 46: without the rebuild every task with compiled code measures 1.0x."""
    counting = PLAN.model_copy(update={"instructions_share": 60.0})
    measured = measure(with_c, {"src/tinyc/_fast.c": FAST_C}, plan=counting)
    require_faster_over_builds(measured, measure.log)
    assert measured.instructions_ratio > 1.5, measured.instructions
    engine, image, _ = with_c
    again, log = measure_again(engine, image, measure.procedure, patch=measure.patch, seed=1, run_id="again")
    require_faster_over_builds(again, log)
    assert again.instructions_ratio == pytest.approx(measured.instructions_ratio, rel=0.01)
    first, second = ({sample.objects for sample in each.results[0].samples} for each in (measured, again))
    assert first != second, "another seed gives other layouts"


def require_faster_over_builds(measured, log):
    assert measured.faster == ("bench.time_total",)
    assert measured.speedup > 5
    # No other benchmark is timed: a coverage build shows that none of them executes the change.
    assert [result.benchmark for result in measured.results] == ["bench.time_total"]
    assert measured.rule.unit is RandomizationUnit.BUILD
    # every round has a build of each arm, with a layout of its own
    for arm in Arm:
        taken = [sample for sample in measured.results[0].samples if sample.arm is arm]
        assert len({sample.objects for sample in taken}) == 5
        assert [(sample.build, sample.round) for sample in taken] == [(number, number) for number in range(5)]
    # they were only linked again
    assert "linked again" not in log


@of_image("C that is not faster")
def test_c_that_no_benchmark_reaches_is_no_relevant_change(measure, with_c):
    with pytest.raises(Rejection) as rejection:
        measure(with_c, {"src/tinyc/_fast.c": SLOW_C.replace("PyLong_FromLong(1)", "PyLong_FromLong(2)")})
    assert rejection.value.reason is RejectionReason.NO_RELEVANT_WORKLOAD
    assert "coverage of the base tells of src/tinyc/_fast.c" in rejection.value.log


@of_image("C that is not faster")
def test_c_without_benchmarks_is_reached_by_the_authors_snippets(measure, with_c):
    body = "```python\nfrom tinyc import _fast\n_fast.never(0)\n```\n```python\nimport tinyc\ntinyc.total(5)\n```\n"
    same = SLOW_C.replace("return PyLong_FromLong(1)", "volatile long one = 1;\n    return PyLong_FromLong(one)")
    measured = measure(with_c, {"src/tinyc/_fast.c": same}, body)
    # both run on both sides with one result; a coverage build shows which of them the change is about
    assert [result.benchmark for result in measured.results] == ["snippets.Snippet1.time_snippet"]
    assert measured.provenance.source is Source.SNIPPETS
    assert len(measured.provenance.adapted) == 2


@of_image("Cython")
def test_benchmarks_of_faster_cython_are_found_by_its_lines(measure, with_cython):
    measured = measure(with_cython, {"src/tinyc/_cubes.pyx": FAST_CYTHON})
    assert [result.benchmark for result in measured.results] == ["bench.time_cubes"], measure.log
    assert measured.is_faster, measure.log


@of_image("Rust")
def test_benchmarks_of_faster_rust_are_found_by_its_lines(measure, with_rust):
    measured = measure(with_rust, {"src/lib.rs": FAST_RUST})
    assert [result.benchmark for result in measured.results] == ["bench.time_steps"], measure.log
    assert measured.is_faster, measure.log


@of_image("Rust")
def test_rust_that_no_benchmark_reaches_is_no_relevant_change(measure, with_rust):
    with pytest.raises(Rejection) as rejection:
        measure(with_rust, {"src/lib.rs": SLOW_RUST.replace("n + 1\n", "n + 2\n")})
    assert rejection.value.reason is RejectionReason.NO_RELEVANT_WORKLOAD
    assert "coverage of the oracle tells of src/lib.rs" in rejection.value.log


@of_image("C that is not faster")
def test_a_source_change_without_object_changes_needs_no_more_builds(measure, with_c):
    measured = measure(with_c, {"src/tinyc/_fast.c": SLOW_C.replace("volatile", "/* kept */ volatile")})
    assert measured.rule.unit is RandomizationUnit.PROCESS
    assert len({sample.objects for result in measured.results for sample in result.samples}) == 1
    assert measured.verdict is not Verdict.FASTER


@of_image("Python beside C")
def test_faster_python_with_other_compiler_flags_is_measured_over_builds(measure, with_c):
    flags = C_FILES["setup.py"].replace('_fast.c"])', '_fast.c"], extra_compile_args=["-O1"])')
    measured = measure(with_c, {"src/tinyc/__init__.py": FAST_PYTHON, "setup.py": flags})
    assert [result.benchmark for result in measured.results] == ["bench.time_squares"]
    assert (measured.rule.unit, measured.is_faster) == (RandomizationUnit.BUILD, True), measure.log
    for arm in Arm:
        assert len({sample.objects for sample in measured.results[0].samples if sample.arm is arm}) == 5


@of_image("Python beside C")
def test_a_faster_python_function_is_found_where_it_is_installed(measure, with_c):
    measured = measure(with_c, {"src/tinyc/__init__.py": FAST_PYTHON})
    assert [result.benchmark for result in measured.results] == ["bench.time_squares"]
    assert measured.is_faster
    assert measured.speedup > 5


@of_image("Python beside C")
def test_a_patch_that_saves_memory_is_faster_by_its_memory(measure, with_c):
    """The tracked value is unchanged."""
    plan = PLAN.model_copy(update={"looks": (InterimAnalysis(units=6, alpha=0.05),)})
    whole = '[b"x" * 1_000_000 for _ in range(n)]'
    measured = measure(
        with_c, {"src/tinyc/__init__.py": SLOW_PYTHON.replace(whole, '[b"x" * 1_000_000] * n')}, plan=plan
    )
    by_name = {result.benchmark: result for result in measured.results}
    assert set(by_name) == {"bench.peakmem_held", "bench.track_held"}
    assert (measured.verdict, measured.metric) == (Verdict.FASTER, Metric.PEAK_MEMORY)
    assert measured.faster == ("bench.peakmem_held",)
    assert measured.speedup > 1.5
    base = [sample.value for sample in by_name["bench.peakmem_held"].samples if sample.arm is Arm.BASE]
    assert all(60e6 < value < 200e6 for value in base), "bytes"
    assert by_name["bench.track_held"].speedup == 1.0
    assert measured.rule.metrics == (Metric.PEAK_MEMORY, Metric.TRACKED)


@of_image("faster C")
def test_comments_are_no_relevant_change(measure, with_c):
    with pytest.raises(Rejection) as rejection:
        measure(with_c, {"src/tinyc/__init__.py": SLOW_PYTHON.replace("return found", "return found  # all of them")})
    assert rejection.value.reason is RejectionReason.NO_RELEVANT_WORKLOAD
