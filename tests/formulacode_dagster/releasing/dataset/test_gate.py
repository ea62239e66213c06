"""The page that says what a release demanded of its tasks."""

from __future__ import annotations

from pathlib import Path

from formulacode_dagster.models.grading import ReleaseGate
from formulacode_dagster.models.month import Month
from formulacode_dagster.releasing.dataset.edition import Edition
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from formulacode_dagster.releasing.dataset.gate import GATE_FILE, render_gate
from formulacode_dagster.releasing.dataset.index import DatasetIndex, facts_of
from formulacode_dagster.releasing.dataset.tables import MonthTables, month_tables
from formulacode_dagster.releasing.dataset.task_tables import TaskRecords
from tests.support.release import MONTH, task_row

GATE = ReleaseGate(
    graded=3,
    gradable=2,
    not_gradable={"acme/fast#9": "cache gets 0.40 (faster)"},
    not_graded={"not_published": 1},
    rewarded={"oracle": (6, 6), "cache": (1, 3)},
    unfinished=1,
    oracle_reward=0.934,
    cpu_seconds=123.4,
    machines=("a CPU, 2 cores, x86_64",),
    graders=("ab12",),
    platform="0.1.0",
)


def tables(gate: ReleaseGate | None = GATE) -> MonthTables:
    return month_tables([TaskRecords(row=task_row(number)) for number in (1, 2)], gate)


def test_it_says_what_was_demanded_what_held_and_what_was_left_out() -> None:
    page = render_gate(DatasetIndex(months=(facts_of(Edition(Month.parse(MONTH)), tables()),)))
    for part in (
        "## `formulacode@2026-03`",
        "3 tasks were probed; 2 of them are released, whose authors' patches get 0.93 or more.",
        "| `cache` | 3 | 1 |",
        "- acme/fast#9: cache gets 0.40 (faster)",
        "1 released tasks were not graded: `not_published`.",
        "123.4 CPU seconds, on a CPU, 2 cores, x86_64; grader ab12; platform 0.1.0.",
    ):
        assert part in page
    assert "\n\n\n" not in page


def test_output_of_a_grader_is_one_short_line_and_no_markup() -> None:
    hostile = "\n## Passed\n| a | <img src=x> ![x](https://evil.test/x) [y](z) `code` " + "x" * 400
    gate = GATE.model_copy(update={"not_gradable": {"acme/fast#9": hostile}})
    page = render_gate(DatasetIndex(months=(facts_of(Edition(Month.parse(MONTH)), tables(gate)),)))
    (line,) = [line for line in page.splitlines() if "acme/fast#9" in line]
    start = r"## Passed \| a \| &lt;img src=x&gt; !\[x](https://evil.test/x) \[y](z) \`code\` xxx"
    assert line.startswith(f"- acme/fast#9: {start}")
    assert line.endswith("x…")
    assert len(line) < 340
    assert "\n## Passed" not in page


def test_a_month_without_gradings_says_so() -> None:
    bare = GATE.model_copy(update={"graded": 0, "gradable": 0, "not_gradable": {}, "rewarded": {}})
    page = render_gate(DatasetIndex(months=(facts_of(Edition(Month.parse(MONTH)), tables(bare)),)))
    assert "No task was probed.\n" in page


def test_a_release_has_it_and_gradings_are_no_rows(tmp_path: Path) -> None:
    folder = FolderDestination(tmp_path)
    first = folder.release(Month.parse(MONTH), tables())
    page = folder.content(GATE_FILE, first.tag)
    assert page is not None
    assert b"`formulacode@2026-03`" in page
    # another gating of the same rows is no revision
    again = folder.release(Month.parse(MONTH), tables(GATE.model_copy(update={"cpu_seconds": 1.0})))
    assert again == first
    assert folder.content(GATE_FILE, first.tag) == page
