"""A package of three functions with a suite, and its measurement in sessions that are copies of a folder."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from formulacode_dagster.building.engines.protocol import Completed, Engine
from formulacode_dagster.building.suites.overlays import BASE_SUITE, NO_SUITE, SuiteFiles
from formulacode_dagster.measuring.measurement.choosing import LaterSuites, no_later_suites
from formulacode_dagster.measuring.measurement.measure import (
    MeasurementSettings,
    TaskToMeasure,
    WorkloadSources,
    measure_task,
)
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.procedure import Procedure
from formulacode_dagster.models.image import WORKLOADS_FOLDER, BuiltImage, EngineName, ResourceLimits
from formulacode_dagster.models.measurement import InterimAnalysis, Measurement
from formulacode_dagster.models.pull_request import PullRequest
from tests.support.measurement import FolderEngine

PLAN = SamplingPlan(
    seconds_per_sample=0.01, max_repeats=0, instructions_share=0, looks=(InterimAnalysis(units=8, alpha=0.004),)
)
"""One look, so that a test on a busy machine does not wait for the last."""
FEWEST = PLAN.model_copy(update={"looks": (InterimAnalysis(units=5, alpha=0.05),)})
"""As few rounds as can be significant: for a test of which workloads are timed, not of what noise is called."""
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


@dataclass
class MeasureChange:
    """`measure(after)`: measures the change of *files* into *after*, in sessions that are copies of a folder."""

    folder: Path
    git_patch: Callable[..., bytes]
    engine_of: Callable[..., FolderEngine]
    image: BuiltImage
    pull_request: Callable[..., PullRequest]
    progress: list[str] = field(default_factory=list)
    engine: FolderEngine = field(init=False)
    """Of the last measurement, as is the next."""
    procedure: Procedure = field(init=False)

    def __call__(
        self,
        after: Mapping[str, str | None],
        *,
        files: Mapping[str, str] = FILES,
        suite: SuiteFiles = BASE_SUITE,
        patch: bytes | None = None,
        build: Callable[[Path], Completed] | None = None,
        plan: SamplingPlan = FEWEST,
        body: str = "",
        engine: EngineName = EngineName.PROCESS,
        later: LaterSuites = no_later_suites,
        **options: Any,
    ) -> tuple[Measurement, str]:
        """The measurement, and its log; *options* are those of `measure_task`."""
        source = Path(tempfile.mkdtemp(dir=self.folder))
        written = self.git_patch(source, files, after)
        self.engine = self.engine_of(source, build)
        spec = self.image.spec
        if suite is NO_SUITE:
            spec = spec.model_copy(update={"benchmark_dir": WORKLOADS_FOLDER})
        pr = self.pull_request(*after)
        pr = pr.model_copy(update={"facts": pr.facts.model_copy(update={"body": body})})
        image = self.image.model_copy(update={"engine": engine, "spec": spec})
        sources = {name: options.pop(name) for name in ("shown", "writer") if name in options}
        cores = {name: options.pop(name) for name in ("cores",) if name in options}
        timed = measure_task(
            cast(Engine, self.engine),
            TaskToMeasure(pr, written if patch is None else patch, image, "run"),
            WorkloadSources(suite, later, **sources),
            MeasurementSettings(plan, ResourceLimits(benchmark_seconds=10), **cores),
            progress=self.progress.append,
            **options,
        )
        self.procedure = timed.procedure
        return timed.measurement, timed.log


@pytest.fixture
def measure(
    tmp_path: Path,
    git_patch: Callable[..., bytes],
    engine_of: Callable[..., FolderEngine],
    image: BuiltImage,
    pull_request: Callable[..., PullRequest],
) -> MeasureChange:
    """Of this test's package."""
    return MeasureChange(tmp_path, git_patch, engine_of, image, pull_request)
