"""The registry: the table of all tasks, and the months with their releases."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from formulacode_dagster.library import Dataset, Task
from formulacode_dagster.models.agent_run import Review
from formulacode_dagster.models.grading import LEAST_REWARD
from formulacode_dagster.releasing.dataset.card import CARD_FILE
from formulacode_dagster.releasing.dataset.index import IndexedMonth
from formulacode_dagster.releasing.dataset.tables import data_path, table_path
from formulacode_dagster.releasing.dataset.task_tables import TABLES

from .markup import markdown
from .tables import Bound, Column, DataTable, Facet
from .views import replays_text

if TYPE_CHECKING:
    from markupsafe import Markup

RELEASES = "releases"
TASK_FIELDS = (
    *("task_id", "repo_name", "classification", "difficulty", "speedup", "speedup_low", "speedup_high", "month"),
    *("merged", "workloads", "replays", "reviews", "verified", "license", "image_name", "image_digest"),
)
MONTH_FIELDS = ("month", "tag", "tasks", "verified", "replayed", "confirmed", "repositories", "median_speedup")
DIFFICULTIES = ("easy", "medium", "hard")


def task_table(tasks: Mapping[str, Task], reviews: Mapping[str, Sequence[Review]]) -> DataTable:
    """Return the table of all tasks."""
    return tasks_of([_task_row(task.row, reviews.get(task_id, ())) for task_id, task in tasks.items()])


def tasks_of(rows: Sequence[Mapping[str, Any]]) -> DataTable:
    """Return the table of tasks with these *rows*."""
    return DataTable(
        name="tasks",
        noun="tasks",
        columns=(
            Column("task_id", "Task", "link", href="tasks", target="task_id", small="repo_name"),
            Column("classification", "Category"),
            Column("difficulty", "Difficulty", order=DIFFICULTIES),
            Column("speedup", "Speed-up", "number", low="speedup_low", high="speedup_high", suffix="×"),
            Column("replays", "Replays", small="reviews"),
            Column("merged", "Merged", small="verified"),
        ),
        fields=TASK_FIELDS,
        rows=rows,
        sort="merged",
        facets=(
            Facet("repo_name", "Repository"),
            Facet("classification", "Category"),
            Facet("difficulty", "Difficulty"),
            Facet("month", "Month"),
            Facet("workloads", "Workloads"),
            Facet("replays", "Replays"),
            Facet("verified", "Verified"),
            Facet("reviews", "Reviews"),
        ),
        bounds=(Bound("speedup", "Speed-up, at least"),),
        search=("task_id", "repo_name", "classification"),
    )


def _task_row(row: Mapping[str, Any], reviews: Sequence[Review]) -> dict[str, Any]:
    known = {name: row.get(name) for name in TASK_FIELDS}
    return known | {
        "merged": row["pr_merged_at"].date().isoformat(),
        "workloads": row.get("workload_source") or "unknown",
        "replays": replays_text(row),
        "reviews": reviews[-1].verdict.value if reviews else "not reviewed",
        "verified": "verified" if row["verified"] else "not verified",
    }


def month_table(months: Sequence[IndexedMonth]) -> DataTable:
    """Return the months, for programs."""
    rows = [month.model_dump(mode="json", include=set(MONTH_FIELDS)) for month in months]
    return DataTable("months", "months", (), MONTH_FIELDS, rows, sort="month")


@dataclass(frozen=True)
class ReleasedFile:
    """A file of a release, by which a copy can be checked."""

    path: str
    size: int
    sha256: str


@dataclass(frozen=True)
class ReleaseView:
    """All that the page of a release shows."""

    month: IndexedMonth
    files: tuple[ReleasedFile, ...]
    card: Markup | None
    """The dataset's card as of the release; None if it has none."""
    least_reward: float = LEAST_REWARD


def release_view(dataset: Dataset, month: IndexedMonth) -> ReleaseView:
    """Content of the page about the release of *month*; raises as reading the dataset."""
    paths = [data_path(month.month), *(table_path(table, month.month) for table in TABLES)]
    contents = {path: dataset.file(path, month.month) for path in paths}
    card = dataset.file(CARD_FILE, month.month)
    return ReleaseView(
        month,
        tuple(
            ReleasedFile(path, len(content), hashlib.sha256(content).hexdigest())
            for path, content in contents.items()
            if content is not None
        ),
        markdown(_without_head(card.decode())) if card else None,
    )


def _without_head(card: str) -> str:
    """*card* without the YAML between its first two lines of dashes, and without links to files next to it."""
    head, _, text = card.removeprefix("---\n").partition("\n---\n")
    text = text if card.startswith("---\n") and head else card
    return re.sub(r"\[([^\]]+)\]\((?!https?:)[^)]*\)", r"\1", text)
