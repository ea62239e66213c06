"""The asset `exports`: a released month as folders, and the check that they are what the release holds."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from assets.checks import JudgedMonth
from assets.exports import exports, folders_hold_the_release
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.release import TaskRecord
from formulacode_dagster.operating.files.atomic import PARTIAL
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from formulacode_dagster.releasing.exports.formats import HarnessFormat
from resources.defaults import default_resources
from resources.folders import TaskFoldersResource
from resources.hub import HubResource
from tests.records import make_image, make_spec
from tests.support.exports import row_of
from tests.support.release import tables_of, task_row

MONTH = "2026-02"
PATCH = b"diff --git a/f.py b/f.py\n--- a/f.py\n+++ b/f.py\n@@ -1 +1 @@\n-a = 1\n+faster = 2\n"


@pytest.fixture
def task() -> TaskRecord:
    """A task that can be exported."""
    image = make_image(spec=make_spec(package_name="fast"))
    return TaskRecord.model_validate(row_of("python", image, PATCH, "registry.test/tasks:5", "sha256:" + "1" * 64))


@pytest.fixture
def dataset(tmp_path: Path, task: TaskRecord) -> FolderDestination:
    """A dataset that holds that task, and one without an image."""
    destination = FolderDestination(tmp_path / "dataset")
    destination.release(Month.parse(MONTH), tables_of([task, task_row(6)]))
    return destination


@pytest.fixture
def materialize(
    dataset: FolderDestination,
    tmp_path: Path,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    dagster_instance: dg.DagsterInstance,
) -> Callable[[], dict[str, Any]]:
    """Metadata of the asset of the month."""
    monkeypatch.setenv("FC_HOME", str(tmp_path))
    monkeypatch.setenv("FC_DATABASE_URL", database_url)

    def run() -> dict[str, Any]:
        parts = [exports.definition, *(check.definition(Stage.EXPORTS) for check in exports.checks)]
        known, needed = default_resources(), exports.definition.required_resource_keys
        resources = {name: known[name] for name in needed if name in known}
        done = dg.materialize(parts, partition_key=MONTH, instance=dagster_instance, resources=resources)
        (event,) = done.asset_materializations_for_node("exports")
        return {name: value.value for name, value in event.metadata.items()}

    return run


@pytest.fixture
def offenders(materialize: object, database: Database) -> Callable[[], tuple[str, ...]]:
    """The findings of the check for the month."""
    folders = TaskFoldersResource()
    month = JudgedMonth(database, Stage.EXPORTS, MONTH, "run")
    return lambda: folders_hold_the_release.verdict(month, hub=HubResource(), task_folders=folders).offenders


@pytest.mark.slow
def test_a_released_month_is_exported_for_every_harness_with_omissions(
    materialize: Any, offenders: Any, tmp_path: Path, database: Database
) -> None:
    told = materialize()
    month = tmp_path / "exports" / MONTH
    assert offenders() == ()
    assert (told["release"], told["path"]) == ("formulacode@2026-03", str(month))
    assert told["dagster/row_count"] == len(HarnessFormat)
    assert all(told[f"tasks_for_{each}"] == 1 for each in HarnessFormat)
    listed = json.loads((month / "tasks.json").read_text())
    assert [each["folder"] for each in listed] == [f"{each}/acme__python-5" for each in HarnessFormat]
    assert {each["image"] for each in listed} == {f"registry.test/tasks@sha256:{'1' * 64}"}
    with database.transaction() as connection:
        entries = {each.item: each for each in ledger.entries_of(connection, MONTH, Stage.EXPORTS)}
    assert {item: (each.state, each.reason) for item, each in entries.items()} == {
        "acme/fast#5": ("done", ""),
        "acme/fast#6": ("skipped", "not_published"),
    }


@pytest.mark.slow
def test_changed_or_withdrawn_exports_are_named_and_repaired(
    materialize: Any, offenders: Any, dataset: FolderDestination, tmp_path: Path, task: TaskRecord
) -> None:
    materialize()
    folder = tmp_path / "exports" / MONTH / HarnessFormat.HARBOR / task.task_id
    (folder / "instruction.md").write_text("Do nothing.")
    assert offenders() == (f"harbor/{task.task_id}: changed",)
    shutil.rmtree(folder)
    assert offenders() == (f"harbor/{task.task_id}: missing",)
    # what has no image is looked at by every run
    assert (materialize()["worked_in_this_run"], offenders(), folder.is_dir()) == (2, (), True)
    assert (materialize()["worked_in_this_run"], offenders()) == (1, ())

    notes = folder.parent / "notes"
    notes.mkdir()
    unfinished = folder.parent / f"{PARTIAL}new-acme__gone-1"
    unfinished.mkdir()
    dataset.release(Month.parse(MONTH), tables_of([task_row(6)]), correction="it was no task")
    assert {f"harbor/{task.task_id}: left over", "harbor/notes: left over"} <= set(offenders())
    materialize()
    assert (folder.exists(), unfinished.exists(), notes.exists()) == (False, False, True)
    assert offenders() == ("harbor/notes: left over",)
