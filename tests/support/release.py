"""Rows of the dataset, and tables of a month from rows only."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from formulacode_dagster.models.release import TaskRecord
from formulacode_dagster.releasing.dataset.tables import MonthTables, month_tables
from formulacode_dagster.releasing.dataset.task_tables import TaskRecords

MONTH = "2026-02"
MERGED = datetime(2026, 2, 14, 12, 30, 0, 250_000, tzinfo=UTC)


def task_row(number: int, **changes: object) -> TaskRecord:
    """The row of task `acme__fast-N`."""
    facts: dict[str, object] = {
        "task_id": f"acme__fast-{number}",
        "repo_name": "acme/fast",
        "container_name": f"acme-fast-{'b' * 40}:final",
        "image_name": None,
        "image_digest": None,
        "difficulty": "easy",
        "classification": "cache_and_reuse",
        "patch": f"diff --git a/f{number} b/f{number}\n+é\r\n",
        "final_md": "Make it faster — please.",
        "statement_minimal": "Make it faster — please.",
        "statement_issue": None,
        "pr_merged_at": MERGED,
        "pr_merge_commit_sha": "a" * 40,
        "pr_base_sha": "b" * 40,
        "pr_number": number,
        "month": MONTH,
        "python": "3.12",
        "lock": "numpy==2.0.0 --hash=sha256:0\n",
        "metric": "time",
        "speedup": 1.5 + number / 10,
        "speedup_low": 1.4,
        "speedup_high": 3.0,
        "p_value": 0.004,
        "control_speedup": 1.0,
        "faster_benchmarks": ("bench.time_b(1)",),
        "slower_benchmarks": (),
        "benchmark_returns": ("same", "not_comparable"),
        "pass_to_pass": ("tests/test_f.py::test_it",),
        "fail_to_pass": (),
        "flaky_tests": (),
        "changed_lines": 4,
        "covered_lines": 3,
        "weak_tests": False,
        "machine": "a machine",
        "benchmarks": ("bench.time_a", "bench.time_b(1)"),
        "benchmark_speedups": (1.25, 2.0),
        "benchmark_metrics": ("time", "peakmemory"),
        "benchmark_units": ("seconds", "bytes"),
        "benchmark_lines": ('{"base": {"f.py": [1]}}', "{}"),
        "workload_source": "base_suite",
        "workload_repository": "acme/fast",
        "workload_commit": "b" * 40,
        "workload_sha256": "",
        "workload_adapted": (),
        "pulled_by_digest": number % 2 == 0,
    }
    facts |= changes
    return TaskRecord.model_validate({"verified": facts["pulled_by_digest"], **facts})


def tables_of(rows: Sequence[TaskRecord]) -> MonthTables:
    """The tables of a month with these tasks, of which only the row is stored."""
    return month_tables([TaskRecords(row=row) for row in rows])


def replay_note(verdict: str = "confirmed", **changes: object) -> dict[str, object]:
    """A replay as the column `replays` of a row has it: on one machine, with the row's speed-up and instructions."""
    return {
        "release": "formulacode@2026-03",
        "replayed_at": "2026-04-01T00:00:00Z",
        "machine": "EPYC, 2 cores",
        "cpu_family": "AuthenticAMD family 25 model 1",
        "verdict": verdict,
        "measured": "faster",
        "speedup": 2.0,
        "low": 1.9,
        "high": 2.1,
        "is_same_harness": True,
        "released_speedup": 2.0,
        "instructions_ratio": 2.5,
        "released_instructions_ratio": 2.5,
    } | changes
