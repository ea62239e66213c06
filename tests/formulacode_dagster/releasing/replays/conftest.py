"""Replays of tasks, and rows that a replay is made from."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from formulacode_dagster.building.suites.overlays import BASE_SUITE
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.procedure import Procedure
from formulacode_dagster.models.image import EngineName, ResourceLimits
from formulacode_dagster.models.measurement import RandomizationUnit
from formulacode_dagster.models.release import Replay, ReplayVerdict
from formulacode_dagster.releasing.replays.released import TaskToReplay
from tests.records import MONTH, make_image, make_measurement

PATCH = b"diff --git a/f b/f\n"

MakeReplay = Callable[..., Replay]
MakeTask = Callable[..., TaskToReplay]


@pytest.fixture
def replay() -> MakeReplay:
    """Makes a replay of task `a__b-1` with a verdict, and with changes."""

    def make(verdict: str, **changes: object) -> Replay:
        ran = verdict != ReplayVerdict.COULD_NOT_RUN
        facts: dict[str, object] = {
            "month": MONTH,
            "task_id": "a__b-1",
            "attempt": 1,
            "release": "formulacode@2026-03",
            "destination": "hub:acme/tasks",
            "replayed_at": datetime(2026, 4, 1, tzinfo=UTC),
            "run_id": "run",
            "verdict": verdict,
            "failure": None if ran else "image_missing",
            "detail": "",
            "is_same_harness": True,
            "measurement": make_measurement({"bench.a": 2.0 if verdict == "confirmed" else 1.0}) if ran else None,
        }
        return Replay.model_validate({**facts, **changes})

    return make


@pytest.fixture
def task() -> MakeTask:
    """Makes a released task, measured in a folder unless changes say otherwise."""

    def make(number: int = 1, *, engine: EngineName = EngineName.PROCESS, **changes: object) -> TaskToReplay:
        image = make_image(engine=engine)
        plan = SamplingPlan()
        procedure = Procedure.of(
            image,
            patch=PATCH,
            suite=BASE_SUITE,
            benchmarks=["bench.a"],
            plan=plan,
            rule=plan.rule(RandomizationUnit.PROCESS),
            limits=ResourceLimits(),
        )
        facts = {
            "month": MONTH,
            "task_id": f"a__b-{number}",
            "item": f"a/b#{number}",
            "number": number,
            "patch": PATCH,
            "procedure_json": procedure.to_json(),
            "image_name": "",
            "image_digest": "",
        }
        assert hashlib.sha256(PATCH).hexdigest() == procedure.patch_sha256
        return TaskToReplay(**{**facts, **changes})

    return make
