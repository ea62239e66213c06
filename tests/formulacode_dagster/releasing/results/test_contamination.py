"""Marks of contamination by a table of models that users extend, and facts about tasks."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

import pytest

from formulacode_dagster.models.agent_run import Contamination
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.releasing.results.contamination import Cutoffs
from formulacode_dagster.releasing.results.task_facts import facts_of, language_of, marked
from tests.support.agent_runs import agent_run, released_row

MERGED = datetime(2025, 7, 31, 23, 0, tzinfo=UTC)


@pytest.fixture
def cutoffs(tmp_path):
    """The table with rows of a user."""
    file = tmp_path / "models.csv"
    file.write_text("model,cutoff,source\nours-*,2025-07-31,we trained it\ngpt-4o*,2026-01-01,ours\n")
    return Cutoffs.read(file)


@pytest.mark.parametrize(
    ("model", "cutoff"),
    [
        ("anthropic/claude-sonnet-4-5-20250929", date(2025, 7, 31)),
        ("claude-opus-4-20250514", date(2025, 3, 31)),
        ("openai/GPT-4.1-mini", date(2024, 6, 1)),
        # later models of a family are other models
        ("claude-opus-4-9", None),
        ("openai/gpt-5.9", None),
        # the first matching row counts
        ("o3-mini-2025-01-31", date(2023, 10, 1)),
        ("o3-2025-04-16", date(2024, 6, 1)),
        ("", None),
    ],
)
def test_the_shipped_table_knows_models_by_their_names(model, cutoff):
    assert Cutoffs.read().of(model) == cutoff


def test_every_shipped_row_names_what_its_vendor_published():
    rows = Cutoffs.read().rows
    assert len({row.model for row in rows}) == len(rows)
    assert [
        row.model for row in rows if not re.search(r"(anthropic|claude|openai|google)\.(com|dev)\b.*20\d\d", row.source)
    ] == []


def test_rows_of_a_user_come_first(cutoffs):
    assert cutoffs.of("me/ours-2") == date(2025, 7, 31)
    assert cutoffs.of("gpt-4o-mini") == date(2026, 1, 1)
    assert cutoffs.of("gpt-4.1") == date(2024, 6, 1)


@pytest.mark.parametrize(
    ("agent", "model", "day", "mark"),
    [
        ("codex", "ours-1", "2025-07-31", Contamination.YES),
        ("codex", "ours-1", "2025-08-01", Contamination.NO),
        ("codex", "theirs", "2025-08-01", Contamination.UNKNOWN),
        ("codex", "", "2025-08-01", Contamination.UNKNOWN),
        ("oracle", "", "2020-01-01", Contamination.NO),
    ],
)
def test_a_run_is_marked_by_the_day_of_the_merge(cutoffs, agent, model, day, mark):
    assert cutoffs.mark(agent, model, datetime.fromisoformat(f"{day}T12:00+00:00")) is mark


@pytest.mark.parametrize("content", ["model,cutoff\nx,soon\n", "name,day\nx,2025-01-01\n", None, b"\xff\xfe\x00"])
def test_a_table_that_is_none_is_an_error_that_names_it(tmp_path, content):
    file = tmp_path / "models.csv"
    if content is not None:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigurationError, match=r"models\.csv is no table of models"):
        Cutoffs.read(file)


@pytest.mark.parametrize(
    ("paths", "language"),
    [
        (["pkg/a.py", "docs/x.c"], "Python"),
        (["pkg/a.py", "pkg/_b.pyx", "src/c.c"], "C + Cython"),
        (["pkg/_b.pyx.in"], "Cython"),
        (["tests/helper.c"], "Python"),
        (["src/lib.rs"], "Rust"),
    ],
)
def test_the_language_is_that_of_the_compiled_sources(paths, language):
    assert language_of(paths) == language


def test_runs_get_the_facts_of_their_tasks(cutoffs):
    row = released_row(pr_merged_at=MERGED, speedup=1.7).model_dump()
    of_it = agent_run(row["task_id"], 1.0, model="ours-1")
    known, other = marked([of_it, agent_run("gone", 1.0)], [row, {"task_id": "of nobody"}], cutoffs)
    assert (known.contaminated, known.task) == (Contamination.YES, facts_of(row))
    assert (known.task.size, known.task.language, known.task.merged_at) == ("1.5–2×", "Python", MERGED)
    assert (other.contaminated, other.task) == (Contamination.UNKNOWN, None)
