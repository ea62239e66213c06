from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.release import TaskRecord
from formulacode_dagster.releasing.dataset.parquet import (
    DATASET_COLUMNS,
    from_parquet,
    month_frame,
    rows_checksum,
    table_columns,
    table_schema,
    to_parquet,
)
from formulacode_dagster.releasing.dataset.tables import first_difference
from formulacode_dagster.releasing.dataset.task_tables import TABLES
from tests.support.release import tables_of

MakeRecord = Callable[..., TaskRecord]


def test_the_columns_of_the_issue_come_first_and_every_field_is_a_column() -> None:
    names = list(table_schema(TaskRecord))
    assert names[:12] == [
        "task_id",
        "repo_name",
        "container_name",
        "image_name",
        "difficulty",
        "classification",
        "patch",
        "final_md",
        "pr_merged_at",
        "pr_merge_commit_sha",
        "pr_base_sha",
        "pr_number",
    ]
    assert set(names) == set(TaskRecord.model_fields)
    types = {
        "pr_merged_at": "Datetime(time_unit='us', time_zone='UTC')",
        "pr_number": "Int64",
        "speedup": "Float64",
        "speedup_low": "Float64",
        "speedup_high": "Float64",
        "p_value": "Float64",
        "control_speedup": "Float64",
        "instructions_ratio": "Float64",
        "change_reached": "Float64",
        **dict.fromkeys(["faster_benchmarks", "slower_benchmarks", "benchmark_returns"], "List(String)"),
        **dict.fromkeys(["pass_to_pass", "fail_to_pass", "flaky_tests"], "List(String)"),
        **dict.fromkeys(["changed_lines", "covered_lines"], "Int64"),
        "weak_tests": "Boolean",
        "benchmarks": "List(String)",
        "benchmark_speedups": "List(Float64)",
        **dict.fromkeys(["benchmark_metrics", "benchmark_units", "benchmark_lines"], "List(String)"),
        **dict.fromkeys(["workload_adapted", "classification_evidence"], "List(String)"),
        **dict.fromkeys(["pulled_by_digest", "verified"], "Boolean"),
    }
    assert [(name, str(kind)) for name, kind in table_schema(TaskRecord).items()] == [
        (name, types.get(name, "String")) for name in names
    ]
    assert [(column.name, column.type) for column in DATASET_COLUMNS] == [
        (name, types.get(name, "String")) for name in names
    ]


@pytest.mark.parametrize("model", [TaskRecord, *TABLES.values()])
def test_types_are_called_as_polars_calls_them(model: type[Frozen]) -> None:
    schema = {name: str(kind) for name, kind in table_schema(model).items()}
    assert {column.name: column.type for column in table_columns(model)} == schema
    assert all(column.description for column in table_columns(model))


def test_a_month_without_tasks_has_the_same_schema(record: MakeRecord) -> None:
    empty, full = month_frame([]), month_frame([record(1)])
    assert empty.height == 0
    assert empty.schema == full.schema
    assert from_parquet(to_parquet(empty), "here").schema == full.schema


def test_rows_come_back_from_parquet_as_they_were(record: MakeRecord) -> None:
    frame = month_frame([record(2), record(1)])
    found = from_parquet(to_parquet(frame), "here")
    assert found.equals(frame)
    assert frame["task_id"].to_list() == ["acme__fast-1", "acme__fast-2"]
    assert found.row(0, named=True)["patch"].endswith("+é\r\n")


def test_the_checksum_ignores_order_and_encoding(record: MakeRecord) -> None:
    frame = month_frame([record(1), record(2)])
    other = pl.concat([month_frame([record(2)]), month_frame([record(1)])])
    assert rows_checksum(other) == rows_checksum(frame)
    assert rows_checksum(from_parquet(to_parquet(other), "here")) == rows_checksum(frame)


@pytest.mark.parametrize(
    "changes", [{"patch": "x"}, {"speedup": 1.6000000001}, {"image_digest": "sha256:1"}, {"benchmarks": ()}]
)
def test_the_checksum_sees_every_change(record: MakeRecord, changes: dict[str, object]) -> None:
    assert rows_checksum(month_frame([record(1)])) != rows_checksum(month_frame([record(1, **changes)]))


def test_two_tasks_of_one_name_are_refused(record: MakeRecord) -> None:
    with pytest.raises(ItemFailure, match="two tasks are called acme__fast-1"):
        month_frame([record(1), record(1, repo_name="other/name")])


def test_what_is_no_parquet_file_is_named(record: MakeRecord) -> None:
    with pytest.raises(ItemFailure, match="data/x is not a readable Parquet file"):
        from_parquet(to_parquet(month_frame([record(1)]))[:100], "data/x")


def test_a_difference_is_told_in_words(record: MakeRecord) -> None:
    released = tables_of([record(1), record(2)])
    wanted = tables_of([record(2, speedup=9.0), record(3)])
    told = first_difference(released, wanted)
    assert told == "1 no longer there: acme__fast-1; 1 new: acme__fast-3; 1 changed: acme__fast-2 (speedup)"
