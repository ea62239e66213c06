from __future__ import annotations

import dataclasses
from datetime import UTC, datetime
from types import SimpleNamespace

import pytest

from formulacode_dagster.measuring.measurement.procedure import Procedure
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.measurement import Metric
from formulacode_dagster.models.release import TaskRecord
from formulacode_dagster.releasing.dataset.destination import ReleasedMonth
from formulacode_dagster.releasing.dataset.parquet import month_frame
from formulacode_dagster.releasing.replays.released import released_image, tasks_of

PLAIN: dict[object, object] = {str: "", str | None: None, int: 0, float: 1.0, float | None: None, bool: False}
"""A value for every column that a replay does not look at."""


def frame_of(task):
    facts = {name: PLAIN.get(field.annotation, ()) for name, field in TaskRecord.model_fields.items()}
    facts |= {"task_id": task.task_id, "repo_name": "a/b", "pr_number": task.number, "month": task.month}
    facts |= {"patch": task.patch.decode("latin-1"), "patch_encoding": "latin-1", "procedure": task.procedure_json}
    facts |= {"metric": task.metric.value, "speedup": task.speedup, "instructions_ratio": task.instructions_ratio}
    return month_frame([TaskRecord(**facts | {"pr_merged_at": datetime(2026, 2, 14, tzinfo=UTC)})])


def test_a_row_gives_all_that_a_replay_takes_the_patch_to_the_byte(task) -> None:
    wanted = task(3, patch=b"diff\n+\xe9\r\n", metric=Metric.MEMORY, speedup=2.5, instructions_ratio=3.5)
    assert list(tasks_of(ReleasedMonth("tag", frame_of(wanted)))) == [wanted]


def test_a_row_released_before_there_were_procedures_is_a_named_failure(task) -> None:
    frame = frame_of(task(speedup=2.5)).drop("procedure", "metric")
    (old,) = tasks_of(ReleasedMonth("tag", frame))
    with pytest.raises(ItemFailure, match="has no measurement procedure") as caught:
        old.procedure()
    assert caught.value.kind == "no_procedure"
    assert old.metric is Metric.TIME


def test_another_patch_than_the_one_that_was_measured_is_refused(task) -> None:
    with pytest.raises(ItemFailure, match="not the one that was measured") as caught:
        dataclasses.replace(task(), patch=b"another").procedure()
    assert caught.value.kind == "mismatch"


def test_the_image_is_taken_by_its_digest_and_built_as_its_row_says(task) -> None:
    released = task()
    procedure = released.procedure()
    engine = SimpleNamespace(name=procedure.engine, location_of=lambda digest: f"/images/{digest}")
    image = released_image(released, procedure, engine, procedure.image_digest)
    assert (image.location, image.digest) == (f"/images/{procedure.image_digest}", procedure.image_digest)
    assert image.spec == Procedure.parse(released.procedure_json, "it").spec


def test_an_image_that_is_not_here_is_that_rows_failure(task) -> None:
    released = task()
    engine = SimpleNamespace(name="process", location_of=lambda _: None)
    with pytest.raises(ItemFailure, match="the image of a__b-1 is not here") as caught:
        released_image(released, released.procedure(), engine, "sha256:1")
    assert caught.value.kind == "image_missing"
