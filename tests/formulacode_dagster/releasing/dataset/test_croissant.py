"""The dataset's Croissant document, by MLCommons' own library: what it accepts, what it reads, what it refuses."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from formulacode_dagster.models.month import Month
from formulacode_dagster.models.release import TaskRecord
from formulacode_dagster.releasing.dataset.croissant import CROISSANT_FILE, croissant
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from formulacode_dagster.releasing.dataset.index import DatasetIndex
from formulacode_dagster.releasing.dataset.tables import MonthTables, month_tables
from formulacode_dagster.releasing.dataset.task_tables import Table, TaskRecords
from tests.support.release import tables_of

ROOT = Path(__file__).parents[4]
PYTHON = ROOT / "build/datasets/bin/python"
URL = "https://hub.example/datasets/acme/tasks"
JANUARY, FEBRUARY = Month.parse("2026-01"), Month.parse("2026-02")


def told_of(*documents: Path) -> list[dict[str, Any]]:
    command = [PYTHON, ROOT / "tests/support/read_croissant.py", *documents]
    done = subprocess.run(command, capture_output=True, text=True, env={"PATH": os.environ["PATH"]}, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    told: list[dict[str, Any]] = json.loads(done.stdout)
    return told


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_reference_library_reads_all_tables_and_rejects_broken_ones(
    records: TaskRecords, record: Callable[..., TaskRecord], tmp_path: Path
) -> None:
    if not PYTHON.exists():
        pytest.skip(f"no {PYTHON.relative_to(ROOT)}; run .ci/install-datasets")
    folder = FolderDestination(tmp_path)
    older = tables_of([record(2)])
    folder.release(JANUARY, MonthTables(older.tasks.drop("license"), {}))
    folder.release(FEBRUARY, month_tables([records]))
    document = tmp_path / CROISSANT_FILE
    elsewhere = tmp_path / "of-a-hub.json"
    elsewhere.write_bytes(croissant(DatasetIndex.parse((tmp_path / "months.json").read_bytes(), ""), URL))
    broken = tmp_path / "broken.json"
    broken.write_bytes(document.read_bytes().replace(b'"@id": "samples-files"', b'"@id": "others"', 1))

    whole, of_a_hub, refused = told_of(document, elsewhere, broken)
    tables = whole["records"]
    wide = {table.value for table in Table}
    assert tables.keys() == {"default", "verified", *wide}
    ids = {name: {row[f"{name}/task_id"] for row in rows} for name, rows in tables.items()}
    assert ids == {
        "default": {"acme__fast-2", "acme__fast-7"},
        "verified": {"acme__fast-2"},
        **{key: {"acme__fast-7"} for key in wide},
    }
    assert "default/license" not in tables["default"][0]  # January has no such column
    assert tables["samples"][0]["samples/value"] == 0.25
    (executed,) = (row["workloads/executed"] for row in tables["workloads"] if row["workloads/executed"])
    assert executed == [
        {
            "workloads/executed/side": "base",
            "workloads/executed/path": "f.py",
            "workloads/executed/lines": [1, 2],
        }
    ]
    (how,) = tables["procedures"]
    assert [file["procedures/suite_files/path"] for file in how["procedures/suite_files"]] == [
        "benchmarks/bench.py",
        "data.bin",
    ]
    assert how["procedures/limits"]["procedures/limits/cpus"] == 2
    assert of_a_hub == {"records": {}}  # valid, and not there to be read
    assert "samples" in refused["error"]


def test_on_a_hub_files_come_from_the_repository() -> None:
    document = json.loads(croissant(DatasetIndex(), URL))
    repository, *sets = document["distribution"]
    assert (document["url"], repository["contentUrl"], repository["encodingFormat"]) == (URL, URL, "git+https")
    assert {each["containedIn"]["@id"] for each in sets} == {repository["@id"]}
    beside = json.loads(croissant(DatasetIndex(), ""))["distribution"]
    assert [each["includes"] for each in beside] == [each["includes"] for each in sets]
    assert not any("containedIn" in each for each in beside)
