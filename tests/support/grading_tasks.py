"""Tasks that a grader is tried on: one image per package, published to the local registry, and a row per workload."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from uv import find_uv_bin

from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.building.suites.overlays import BASE_SUITE
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.procedure import Procedure
from formulacode_dagster.models.image import BuiltImage, EngineName
from formulacode_dagster.models.measurement import InterimAnalysis, RandomizationUnit
from formulacode_dagster.models.release import PublishedImage, TaskRecord
from formulacode_dagster.releasing.exports.formats import HarnessFormat
from formulacode_dagster.releasing.exports.write import export_task
from formulacode_dagster.releasing.registries.accounts import STRANGER
from formulacode_dagster.releasing.registries.publishing import Registry
from tests.support.docker import OS_IMAGE
from tests.support.exports import REGISTRY, TEST_LOCK, patch_of
from tests.support.grading_packages import FILES, REQUIREMENTS, WORKLOADS, Package, is_compiled, patched
from tests.support.images import LIMITS, Sample, as_image, make_sample, make_spec, with_oracle
from tests.support.release import task_row

PLAN = SamplingPlan(looks=(InterimAnalysis(units=5, alpha=0.05),), max_survey_seconds=20)
"""Five rounds: the fewest that can be significant."""
SHORT_LIMITS = LIMITS.model_copy(update={"benchmark_seconds": 10})
"""Attacks that hang take this long."""
STORED_SPEEDUP = 20.0


def lock_of(package: Package) -> str:
    """The locked requirements of *package*, by the package index."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder, "in.txt")
        wanted.write_text("\n".join(REQUIREMENTS[package]))
        options = ["--no-config", "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--generate-hashes"]
        command = [find_uv_bin(), *options, "--python-version", "3.11", str(wanted)]
        return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def make_package(engine: Engine, package: Package, folder: Path) -> None:
    """Write the rows of every task of *package* into *folder*, its image built and published."""
    folder.mkdir(parents=True, exist_ok=True)
    workloads = list(WORKLOADS[package])
    sample = make_sample(folder / package, package, FILES[package], patched(package, workloads[0]))
    spec = make_spec(sample, lock_of(package), os_image=OS_IMAGE, test_lock=TEST_LOCK)
    image = as_image(EngineName.DOCKER, spec, engine.build(spec, Origins(sample.mirror)))
    published = Registry(REGISTRY, "grading", STRANGER, "single").publish(image, month=image.month)
    for workload in workloads:
        row = _row_of(package, workload, image, patch_of(_authored(sample, folder, package, workload)), published)
        (folder / f"{workload}.json").write_text(TaskRecord.model_validate(row).model_dump_json())


def _authored(sample: Sample, folder: Path, package: Package, workload: str) -> Sample:
    return with_oracle(sample, folder / f"{workload}-author", patched(package, workload))


def _row_of(
    package: Package, workload: str, image: BuiltImage, patch: bytes, published: PublishedImage
) -> dict[str, Any]:
    """The row of one task, as if *patch* had been measured in *image*."""
    task = WORKLOADS[package][workload]
    count, names = len(task.benchmarks), task.benchmarks
    unit = RandomizationUnit.BUILD if is_compiled(package) else RandomizationUnit.PROCESS
    # far apart: on a busy machine, what is ten times as fast still is, and nothing else seems to be
    thresholds = {"min_speedup": 1.5, "min_bound": 1.2, "trade_off": 2.0}
    rule = PLAN.rule(unit, (task.metric,)).model_copy(update=thresholds)
    procedure = Procedure.of(
        image, patch=patch, suite=BASE_SUITE, benchmarks=names, plan=PLAN, rule=rule, limits=SHORT_LIMITS
    )
    return task_row(
        5,
        task_id=task_id(package, workload),
        image_name=published.reference,
        image_digest=published.digest,
        patch=patch.decode(),
        metric=task.metric.value,
        speedup=STORED_SPEEDUP,
        benchmarks=names,
        benchmark_speedups=(STORED_SPEEDUP,) * count,
        benchmark_metrics=(task.metric.value,) * count,
        benchmark_units=(task.unit,) * count,
        benchmark_lines=("{}",) * count,
        benchmark_returns=("same",) * count,
        faster_benchmarks=names,
        pass_to_pass=tuple(listed_tests(package)),
        procedure=procedure.to_json(),
    ).model_dump()


def task_id(package: Package, workload: str) -> str:
    """Name of the task's folder."""
    return f"acme__{package}-{workload}-5"


def listed_tests(package: Package) -> list[str]:
    """Names of the package's tests, as pytest gives them."""
    found = []
    for path, text in FILES[package].items():
        owner = ""
        for line in text.splitlines() if path.startswith("tests/") else ():
            if line.startswith("class "):
                owner = f"{line[6:].partition('(')[0]}::"
            elif line.lstrip().startswith("def test_"):
                found.append(f"{path}::{owner}{line.strip()[4:].partition('(')[0]}")
    return found


def export_package(rows: Path, package: Package, folder: Path) -> None:
    """Export every task of `make_package` in *rows* into *folder*."""
    for workload in WORKLOADS[package]:
        row = TaskRecord.model_validate_json((rows / f"{workload}.json").read_text()).model_dump()
        export_task(row, HarnessFormat.HARBOR, folder / task_id(package, workload))


def read_task(folder: Path) -> Mapping[str, Any]:
    """What an exported task gives its grader."""
    task: dict[str, Any] = json.loads((folder / "tests" / "task.json").read_text())
    return task
