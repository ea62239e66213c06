"""The tables of a month: what is too wide for rows is there, nested, and older releases go on being read."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.release import TaskRecord
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from formulacode_dagster.releasing.dataset.parquet import changed_columns, from_parquet, to_parquet
from formulacode_dagster.releasing.dataset.tables import MonthTables, first_difference, month_tables
from formulacode_dagster.releasing.dataset.task_tables import Table, TaskRecords
from tests.support.release import tables_of

MakeRecord = Callable[..., TaskRecord]
JANUARY, FEBRUARY = Month.parse("2026-01"), Month.parse("2026-02")
FIRST_RELEASE = Path(__file__).with_name("first_release.parquet")
"""A month as in the first releases: only tasks, `replays` and `benchmark_lines` as JSON."""


def test_what_is_too_wide_for_a_row_is_in_tables_of_its_own(records: TaskRecords) -> None:
    tables = month_tables([records])
    assert {table: frame["task_id"].unique().to_list() for table, frame in tables.wide.items()} == {
        table: ["acme__fast-7"] for table in Table
    }
    other, workload = tables.wide[Table.WORKLOADS].to_dicts()
    assert (other["executed"], other["returned"]) == ([], "not_comparable")
    assert workload["executed"] == [{"side": "base", "path": "f.py", "lines": [1, 2]}]
    assert (workload["benchmark"], workload["speedup"], workload["returned"]) == ("bench.time_z", 3.0, "same")
    sample = tables.wide[Table.SAMPLES].to_dicts()[0]
    assert (sample["benchmark"], sample["arm"], sample["value"]) == ("bench.time_a", "oracle", 0.25)
    assert {row["name"]: (row["fate"], row["base"]) for row in tables.wide[Table.TESTS].to_dicts()} == {
        "t.py::a": ("pass_to_pass", ["passed"] * 3),
        "t.py::b": ("fail_to_pass", ["failed"] * 3),
        "t.py::c": ("flaky", ["passed", "passed", "failed"]),
    }
    assert tables.wide[Table.REPLAYS]["verdict"].to_list() == ["could_not_run"]
    (profile,) = tables.wide[Table.PROFILES].to_dicts()
    assert (profile["benchmark"], profile["arm"], profile["calls"]) == ("bench.time_z", "base", 2)
    assert profile["frames"] == [{"file": "f.py", "function": "f", "line": 3}]
    assert profile["stacks"] == [{"frames": [0], "seconds": 0.5}]
    (how,) = tables.wide[Table.PROCEDURES].to_dicts()
    assert (how["verdict"], how["rule_version"], how["looks"][1]) == ("faster", "4", {"units": 8, "alpha": 0.004})
    assert how["limits"]["memory_mb"] == 4096
    assert how["lock_sha256"] == hashlib.sha256(records.row.lock.encode()).hexdigest()
    assert how["suite_files"] == [
        {"path": "benchmarks/bench.py", "content": "def time_a(): ...\n", "encoding": "utf-8"},
        {"path": "data.bin", "content": "/w==", "encoding": "base64"},
    ]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"samples": ()}, "acme__fast-7 (samples)"),
        ({"tests": ()}, "acme__fast-7 (tests)"),
        ({"replays": ()}, ""),
        ({"profiles": ()}, ""),
    ],
)
def test_other_samples_are_another_release_and_replays_and_profiles_wait(
    records: TaskRecords, changes: dict[str, Any], told: str, tmp_path: Path
) -> None:
    before, after = month_tables([records]), month_tables([records.model_copy(update=changes)])
    destination = FolderDestination(tmp_path)
    released = destination.release(FEBRUARY, before)
    assert released.columns["samples.value"] == "Float64"
    if not told:
        assert destination.release(FEBRUARY, after) == released
        return
    assert first_difference(before, after) == f"1 changed: {told}"
    with pytest.raises(ItemFailure, match="a released tag is never changed"):
        destination.release(FEBRUARY, after)


def test_samples_read_back_otherwise_do_not_pass(records: TaskRecords) -> None:
    tables = month_tables([records])
    lost = MonthTables(tables.tasks, {**tables.wide, Table.SAMPLES: tables.wide[Table.SAMPLES].clear()})
    assert lost.checksum != tables.checksum
    assert lost.schema_checksum == tables.schema_checksum


def test_a_reader_of_the_first_release_reads_the_newest(records: TaskRecords) -> None:
    first = pl.read_parquet(FIRST_RELEASE)
    newest = from_parquet(to_parquet(month_tables([records]).tasks), "here")
    both = pl.concat([first, newest.select(first.columns)])
    assert both["task_id"].to_list() == ["acme__fast-1", "acme__fast-7"]
    assert both.schema == first.schema


@pytest.mark.parametrize("change", ["dropped", "retyped", "table"])
def test_a_missing_column_stops_the_release_before_writing(records: TaskRecords, change: str, tmp_path: Path) -> None:
    destination = FolderDestination(tmp_path)
    whole = month_tables([records])
    destination.release(JANUARY, whole)
    tasks, wide = whole.tasks, dict(whole.wide)
    if change == "dropped":
        tasks = tasks.drop("machine")
    elif change == "retyped":
        tasks = tasks.with_columns(pl.col("pr_number").cast(pl.String))
    else:
        del wide[Table.TESTS]
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ItemFailure, match=r"would break readers of formulacode@2026-02") as caught:
        destination.release(FEBRUARY, MonthTables(tasks, wide))
    assert caught.value.kind == "schema_changed"
    assert sorted(tmp_path.rglob("*")) == before


def test_columns_may_be_added(record: MakeRecord, tmp_path: Path) -> None:
    destination = FolderDestination(tmp_path)
    whole = tables_of([record(1)])
    destination.release(JANUARY, MonthTables(whole.tasks.drop("machine"), {}))
    destination.release(FEBRUARY, whole)
    card = (tmp_path / "README.md").read_text()
    assert "new columns machine, procedures.alpha, " in card
    assert changed_columns({"a": "String", "b": "Int64"}, {"a": "String", "b": "Float64", "c": "String"}) == [
        "column b is Float64, it was Int64"
    ]


def test_the_config_of_reviewed_tasks_has_those_whose_newest_review_approves(record: MakeRecord) -> None:
    said = {1: [], 2: ["approved"], 3: ["rejected", "approved"], 4: ["approved", "doubtful"]}
    rows = [
        record(number, reviews=json.dumps([{"verdict": verdict} for verdict in verdicts]))
        for number, verdicts in said.items()
    ]
    files = tables_of(rows).files("2026-02")
    assert from_parquet(files["reviewed/2026-02.parquet"], "")["pr_number"].to_list() == [2, 3]
    older = replace(tables_of(rows), tasks=tables_of(rows).tasks.drop("reviews"))
    assert from_parquet(older.files("2026-02")["reviewed/2026-02.parquet"], "").height == 0
