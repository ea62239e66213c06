"""Tasks by their id, from a folder and from the Hub, as they are and as they were released."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from formulacode_dagster.library import Dataset, TableNotReleasedError, Task
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.measurement import Arm
from formulacode_dagster.models.month import Month
from formulacode_dagster.releasing.dataset.destination import Destination
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from formulacode_dagster.releasing.dataset.hub import HubDestination
from formulacode_dagster.releasing.dataset.tables import MonthTables, month_tables
from formulacode_dagster.releasing.dataset.task_tables import SampleRecord, Table, TaskRecords
from sandbox.hub import app
from sandbox.server import serving
from tests.support.release import task_row

JANUARY, FEBRUARY = Month.parse("2026-01"), Month.parse("2026-02")
FIRST = "formulacode@2026-03"
TOKEN = "hf_tOkEnOfTheTest"


def records_of(number: int, seconds: float = 0.5, **changes: object) -> TaskRecords:
    row = task_row(number, **changes)
    sample = SampleRecord(
        task_id=row.task_id, benchmark="bench.time_a", arm=Arm.BASE, round=0, order=0, value=seconds, calls=1
    )
    return TaskRecords(row=row, samples=(sample,))


def fill(destination: Destination) -> None:
    # as it was released before there were other tables and the column `machine`
    january = month_tables([records_of(1, month="2026-01")])
    destination.release(JANUARY, MonthTables(january.tasks.drop("machine"), {}))
    destination.release(FEBRUARY, month_tables([records_of(2), records_of(3, 0.75)]))
    pushed = {"image_name": "registry.test:5000/acme/tasks:fast-2", "image_digest": "sha256:1"}
    destination.release(FEBRUARY, month_tables([records_of(2, 0.25, **pushed), records_of(4)]), correction="wrong")


@pytest.fixture(params=["folder", "hub"])
def name(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    if request.param == "folder":
        fill(FolderDestination(tmp_path))
        yield str(tmp_path)
        return
    with serving(app(tmp_path / "hub", tokens=frozenset({TOKEN}))) as url:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("HF_ENDPOINT", url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        fill(HubDestination("acme/tasks", url, TOKEN))
        yield "acme/tasks"


@pytest.mark.slow
def test_tasks_are_found_by_their_id_now_and_as_they_were_released(name: str) -> None:
    newest, first = Dataset.load(name), Dataset.load(name, revision=FIRST)
    assert list(newest) == ["acme__fast-1", "acme__fast-2", "acme__fast-4"]
    assert list(first) == ["acme__fast-1", "acme__fast-2", "acme__fast-3"]
    assert [dataset["acme__fast-2"].samples["value"].item() for dataset in (newest, first)] == [0.25, 0.5]
    task = newest["acme__fast-2"]
    assert (task.image, newest["acme__fast-4"].image) == ("registry.test:5000/acme/tasks@sha256:1", None)
    assert (task.statement, task.patch) == ("Make it faster — please.", "diff --git a/f2 b/f2\n+é\r\n".encode())
    assert (task.workloads.height, task.tests.height, task.replays.height) == (0, 0, 0)
    assert list(newest.of_month("2026-02")) == ["acme__fast-2", "acme__fast-4"]
    assert newest.tasks["machine"].to_list() == [None, "a machine", "a machine"]
    with pytest.raises(TableNotReleasedError, match=r"2026-01 of .* has no samples: it was released before"):
        _ = newest["acme__fast-1"].samples
    with pytest.raises(KeyError, match="acme__fast-3"):
        _ = newest["acme__fast-3"]


def test_what_is_not_there_is_told_apart_from_a_dataset_without_tasks(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="holds no release"):
        Dataset.load(tmp_path)
    with pytest.raises(ConfigurationError, match="neither a folder nor a dataset"):
        Dataset.load("no such folder")
    FolderDestination(tmp_path).release(FEBRUARY, month_tables([]))
    assert list(Dataset.load(tmp_path)) == []
    with pytest.raises(ConfigurationError, match=r"holds no release formulacode@2027-01"):
        Dataset.load(tmp_path, revision="formulacode@2027-01")


def test_a_dataset_that_nobody_has_released_yet_holds_no_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving(app(tmp_path / "hub", tokens=frozenset({TOKEN}))) as url:
        monkeypatch.setenv("HF_ENDPOINT", url)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        with pytest.raises(ConfigurationError, match="hub:acme/tasks holds no release"):
            Dataset.load("acme/tasks")
        monkeypatch.setenv("HF_TOKEN", "hf_wrong")
        with pytest.raises(ConfigurationError, match="the Hub refuses to read"):
            Dataset.load("acme/tasks")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hub"], indirect=True)
def test_a_revision_that_the_hub_has_not_is_an_error(name: str) -> None:
    with pytest.raises((ConfigurationError, ItemFailure), match="2027-01"):
        Dataset.load(name, revision="formulacode@2027-01")


def test_a_table_is_read_once(tmp_path: Path) -> None:
    fill(FolderDestination(tmp_path))
    dataset = Dataset.load(tmp_path)
    assert dataset.table(Table.SAMPLES, "2026-02") is dataset.table(Table.SAMPLES, "2026-02")


def test_a_task_is_made_from_a_record_in_one_call() -> None:
    task = Task.from_record(records_of(7))
    assert task.id == "acme__fast-7"
    assert task.samples.select(pl.col("value")).item() == 0.5
