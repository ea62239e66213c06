"""Columns of a row that an exported task is made from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from formulacode_dagster.building.suites.remote import environment_of_runs
from formulacode_dagster.measuring.correctness.runs import TEST_SECONDS
from formulacode_dagster.measuring.measurement.plan import RULE_VERSION
from formulacode_dagster.measuring.measurement.procedure import Procedure
from formulacode_dagster.measuring.measurement.statistics.chance import ENUMERATED_BLOCKS
from formulacode_dagster.measuring.measurement.statistics.intervals import expanded_tail
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.identity import require_file_name
from formulacode_dagster.models.image import EngineName
from formulacode_dagster.models.measurement import Metric, Quantity
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.git.diff import split_patch

TESTS_SECONDS = 900.0
"""Seconds for all tests of a task together."""
LIMITS = {"build_seconds", "benchmark_seconds", "cpus", "memory_mb", "processes"}
ARMS = 4
LEVELS = (0.95, 0.90)


@dataclass(frozen=True)
class ExportedTask:
    """A task that can be graded anywhere: its row, and how it was measured."""

    row: Mapping[str, Any]
    procedure: Procedure

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> ExportedTask:
        """The task of *row*.

        Raises ItemFailure: `no_procedure`, `unreadable`, `mismatch`, `rule_unknown`; `image_missing` if none was
        published, since nobody else could run it.
        """
        task_id = str(row["task_id"])
        require_file_name(task_id)
        if not row.get("procedure"):
            raise ItemFailure(
                FailureKind.NO_PROCEDURE,
                f"the row of {task_id} has no measurement procedure",
                why="it was released before rows did",
                remedy="Measure it again with --force and release a revision",
            )
        procedure = Procedure.parse(row["procedure"], task_id)
        task = cls(row, procedure)
        if hashlib.sha256(task.patch).hexdigest() != procedure.patch_sha256:
            raise ItemFailure(FailureKind.MISMATCH, f"the patch of {task_id} is not the one that was measured")
        if procedure.rule.version != RULE_VERSION or procedure.rule.looks[-1].units > ENUMERATED_BLOCKS:
            raise ItemFailure(
                FailureKind.RULE_UNKNOWN,
                f"{task_id} was judged by version {procedure.rule.version} of the rule, unknown to the grader",
                why=f"here it is {RULE_VERSION}",
                remedy="Export it with the version of the platform that released it",
            )
        if procedure.engine is not EngineName.DOCKER or not row["image_name"] or not row["image_digest"]:
            raise ItemFailure(
                FailureKind.IMAGE_MISSING,
                f"no image of {task_id} was published",
                remedy="Set FC_REGISTRY_URL, publish it and release a revision",
            )
        return task

    @property
    def patch(self) -> bytes:
        """The author's."""
        return str(self.row["patch"]).encode(self.row["patch_encoding"])

    @property
    def image(self) -> str:
        """Argument of `FROM`, by digest."""
        return f"{str(self.row['image_name']).rpartition(':')[0]}@{self.row['image_digest']}"

    @property
    def grading_seconds(self) -> int:
        """Limit of grading in seconds, builds and tests included."""
        plan, limits = self.procedure.plan, self.procedure.limits
        surveys = ARMS * (plan.max_survey_seconds + 2 * limits.benchmark_seconds)
        builds = ARMS * limits.build_seconds + (plan.max_build_seconds if self._is_by_build else 0)
        # of the published inputs, and of others
        return int(builds + 2 * TESTS_SECONDS + 2 * surveys + 2 * plan.max_seconds)

    @property
    def _is_by_build(self) -> bool:
        return self.procedure.rule.unit.value == "build"

    def for_grader(self) -> dict[str, Any]:
        """Input of the grader: the stored rule and plan, workloads, tests and limits, as plain values."""
        row, procedure = self.row, self.procedure
        spec, plan, rule = procedure.spec, procedure.plan, procedure.rule
        measures = zip(row["benchmarks"], row["benchmark_metrics"], row["benchmark_units"], strict=True)
        quantities = {name: Quantity(metric=Metric(metric), unit=unit) for name, metric, unit in measures}
        paths = {path for file in split_patch(self.patch) for path in (file.old_path, file.new_path) if path}
        most = max(2, rule.looks[-1].units)
        return {
            "task_id": row["task_id"],
            "image": self.image,
            "speedup": row["speedup"],
            "speedups": dict(zip(row["benchmarks"], row["benchmark_speedups"], strict=True)),
            "patched_paths": sorted(paths),
            "benchmark_dir": spec.benchmark_dir,
            "suite": procedure.suite,
            "suite_provenance": procedure.provenance.model_dump(mode="json"),
            "suite_files": procedure.files,
            "benchmarks": list(procedure.benchmarks),
            "pass_to_pass": list(row["pass_to_pass"]),
            "package_root": "" if spec.package_root == "." else spec.package_root,
            "packages": [spec.package_name.partition(".")[0]] if spec.package_name else [],
            "environment": environment_of_runs(spec.run_environment),
            "limits": procedure.limits.model_dump(include=LIMITS),
            "test_seconds": TEST_SECONDS,
            "tests_seconds": TESTS_SECONDS,
            "survey_seconds": plan.max_survey_seconds,
            # an arm more than when it was measured, and one after the other
            "max_seconds": 2 * plan.max_seconds,
            "seconds_per_sample": plan.seconds_per_sample,
            "single_call_seconds": plan.single_call_seconds,
            "is_time": all(quantity.metric is Metric.TIME for quantity in quantities.values()),
            "rule": {
                **rule.model_dump(mode="json", exclude={"metrics", "version"}),
                "benchmark_metrics": {name: quantities[name].metric.value for name in procedure.benchmarks},
                "rates": [name for name in procedure.benchmarks if quantities[name].is_rate],
                "tails": {
                    str(level): [expanded_tail((1 - level) / 2, units) for units in range(2, most + 1)]
                    for level in LEVELS
                },
            },
        }
