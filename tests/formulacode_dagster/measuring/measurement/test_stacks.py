"""Stacks of a task's base and oracle."""

from __future__ import annotations

import pytest

from formulacode_dagster.building.suites.overlays import BASE_SUITE
from formulacode_dagster.measuring.measurement.procedure import Procedure
from formulacode_dagster.measuring.measurement.stacks import profile_task
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.models.measurement import Arm, RandomizationUnit, TaskProfile
from tests.formulacode_dagster.measuring.measurement.test_remeasure import FAST, FILES, PLAN

BENCH = f"{FILES['benchmarks/bench.py']}\n\ndef time_old():\n    core.old()\n"
OLD = f"{FILES['pkg/core.py']}\n\ndef old():\n    return total(20000)\n"


@pytest.mark.slow
def test_both_sides_are_sampled_and_what_runs_on_one_alone_has_that_side(tmp_path, git_patch, engine_of, image):
    source = tmp_path / "source"
    source.mkdir()
    files = {**FILES, "pkg/core.py": OLD, "benchmarks/bench.py": BENCH}
    patch = git_patch(source, files, {"pkg/core.py": FAST})
    procedure = Procedure.of(
        image,
        patch=patch,
        suite=BASE_SUITE,
        benchmarks=("bench.time_total", "bench.time_old"),
        plan=PLAN,
        rule=PLAN.rule(RandomizationUnit.PROCESS),
        limits=ResourceLimits(benchmark_seconds=10),
    )
    profile = profile_task(engine_of(source), image, procedure, patch=patch, run_id="run", seconds=0.05)
    assert TaskProfile.model_validate_json(profile.model_dump_json()) == profile
    assert {name: set(by_arm) for name, by_arm in profile.stacks.items()} == {
        "bench.time_total": {Arm.BASE, Arm.ORACLE},
        "bench.time_old": {Arm.BASE},
    }
    both = profile.stacks["bench.time_total"]
    # a loop over 20,000 numbers against one multiplication
    assert both[Arm.BASE].seconds_per_call > 10 * both[Arm.ORACLE].seconds_per_call
    assert "total" in {frame.function for frame in both[Arm.BASE].frames}
