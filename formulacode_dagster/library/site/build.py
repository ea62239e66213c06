"""The site of a dataset, written into a folder: an index, the months, and a page for each task."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from formulacode_dagster.library import Dataset
from formulacode_dagster.models.agent_run import AgentRun
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.files.atomic import disk_errors
from formulacode_dagster.releasing.dataset.index import IndexedMonth

from .plots import bars
from .results_page import SiteResults, data_files, result_tables
from .views import INDEX_COLUMNS, index_row, task_view

if TYPE_CHECKING:
    from jinja2 import Environment

STATIC = ("style.css", "table.js", "README.md")
RESULTS = "results.html"
OF_RESULTS = (RESULTS, "results.js", "results.json", "results.csv", "runs.csv")
"""Files of a site with results."""
DATA = "tasks.js"
TASKS = "tasks"
_FILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")


@dataclass(frozen=True)
class BuiltSite:
    """Result of the build."""

    index: Path
    tasks: int
    months: int


def write_site(
    dataset: Dataset, folder: Path, months: Sequence[str] = (), results: SiteResults | None = None
) -> BuiltSite:
    """Write the site of *dataset* (of these *months*, or of all) into *folder*, over a site that is there.

    With *results*, tasks show attempts and reviews, and a page compares the agents.

    Raises ConfigurationError for a month that was not released and for a folder with other content, ItemFailure
    (`unreadable`) for a task whose id is no valid file name, OutsideSystemError when the disk is full.
    """
    shown = _months(dataset, months)
    rows = {task_id: task for month in shown for task_id, task in dataset.of_month(month.month).items()}
    for task_id in rows:
        _require_file_name(task_id)
    # a path would reveal the machine that wrote the site
    environment = _environment(dataset.name.removeprefix("hub:") if dataset.is_on_hub else Path(dataset.name).name)
    results = results or SiteResults()
    runs = [run for run in results.runs if run.task_id in rows]
    environment.globals["has_results"] = bool(runs)
    with disk_errors(f"the site in {folder}"):
        _make_room(folder)
        for name in STATIC:
            (folder / name).write_text(files(__package__).joinpath("static", name).read_text("utf-8"), "utf-8")
        (folder / DATA).write_text(index_data([dict(task.row) for task in rows.values()]), "utf-8")
        for name, text in _pages(environment, shown, len(rows)):
            (folder / name).write_text(text, "utf-8")
        _write_results(folder, environment, runs, shown)
        template = environment.get_template("task.html.j2")
        attempts: dict[str, list[AgentRun]] = {}
        for run in runs:
            attempts.setdefault(run.task_id, []).append(run)
        for task_id, task in rows.items():
            of_task = {"runs": attempts.get(task_id, ()), "reviews": results.reviews.get(task_id, ())}
            text = template.render(task=task_view(task), root="..", **of_task)
            (folder / TASKS / f"{task_id}.html").write_text(text, "utf-8")
        for page in (folder / TASKS).glob("*.html"):
            if page.stem not in rows:
                page.unlink()
    return BuiltSite(folder / "index.html", len(rows), len(shown))


def _write_results(
    folder: Path, environment: Environment, runs: Sequence[AgentRun], months: Sequence[IndexedMonth]
) -> None:
    """Write the page of results and its data; without *runs*, remove those that are there."""
    if not runs:
        for name in OF_RESULTS:
            (folder / name).unlink(missing_ok=True)
        return
    tables = result_tables(runs, months)
    script = files(__package__).joinpath("static", "results.js").read_text("utf-8")
    page = environment.get_template("results.html.j2").render(tables=tables, root=".")
    for name, text in {RESULTS: page, "results.js": script, **data_files(tables, runs)}.items():
        (folder / name).write_text(text, "utf-8")


def _months(dataset: Dataset, months: Sequence[str]) -> list[IndexedMonth]:
    shown = [month for month in dataset.index.months if not months or month.month in months]
    if missing := sorted(set(months) - {month.month for month in shown}):
        raise ConfigurationError(
            f"{', '.join(missing)} was not released to {dataset.name}", remedy="Name months that its card lists"
        )
    return shown


def _require_file_name(task_id: str) -> None:
    if not _FILE_NAME.fullmatch(task_id):
        raise ItemFailure(
            FailureKind.UNREADABLE,
            f"{task_id!r} cannot be the name of a page",
            why="ids of tasks are owner__repo-number",
            remedy="Find out who made this dataset",
        )


def _make_room(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()) and not (folder / DATA).exists():
        raise ConfigurationError(f"{folder} contains something other than a site", remedy="Name an empty folder")
    (folder / TASKS).mkdir(parents=True, exist_ok=True)


def _pages(environment: Environment, months: Sequence[IndexedMonth], tasks: int) -> Iterator[tuple[str, str]]:
    changes = [None, *months]
    told = list(zip(months, changes, bars([month.tasks for month in months]), strict=False))
    yield "index.html", environment.get_template("index.html.j2").render(tasks=tasks, months=len(months), root=".")
    yield "months.html", environment.get_template("months.html.j2").render(months=told[::-1], root=".")


def _environment(dataset: str) -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader(__package__),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["dataset"] = dataset
    return environment


def index_data(rows: Sequence[dict[str, Any]]) -> str:
    """*rows* for the index, as a script: a page opened from a folder may read nothing else. No `<` is left in it."""
    data = {"columns": INDEX_COLUMNS, "rows": [index_row(row) for row in rows]}
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return f"window.DATA = {text.replace('<', chr(92) + 'u003c')};\n"
