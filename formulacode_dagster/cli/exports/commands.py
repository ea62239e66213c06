"""`fc-data export`: tasks of a release as harnesses take them. `fc-data evaluate`: one of them, run here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from formulacode_dagster.cli.console import complain, complaints, console
from formulacode_dagster.models.errors import ConfigurationError

Folder = Annotated[Path, typer.Argument(help="Folder to write into: a folder for each task.")]
MonthOption = Annotated[str, typer.Option("--month", help="Month, YYYY-MM.")]
FormatOption = Annotated[
    str, typer.Option("--format", help="Whose tasks they are to be: `harbor`, `fc-eval` or `terminal-bench`.")
]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", help="Task id, owner/repo or owner/repo#123; may be repeated.", show_default="everything"),
]
From = Annotated[
    str | None, typer.Option("--from", help="Folder of a dataset, or owner/name on the Hub.", show_default="settings'")
]
Revision = Annotated[str, typer.Option(help="Tag to take, as formulacode@2026-03.", show_default="the newest")]
TaskFolder = Annotated[Path, typer.Argument(help="Folder of one exported task.")]
Agent = Annotated[
    str | None,
    typer.Option("--agent", help="`oracle`, `nop`, or a file: a patch, or a script to run.", show_default="oracle"),
]
DiffFile = Annotated[
    Path | None, typer.Option("--diff", help="Grade this patch alone; no agent runs.", show_default="an agent runs")
]
RecordedRun = Annotated[
    Path | None,
    typer.Option(
        "--regrade",
        help="Grade the changes of a run again: of --keep, or a trial of Harbor.",
        show_default="an agent runs",
    ),
]
Keep = Annotated[
    Path | None,
    typer.Option("--keep", help="Folder for the agent's changes and the report.", show_default="nothing is kept"),
]


def export(
    folder: Folder,
    month: MonthOption,
    format_: FormatOption,
    only: Only = None,
    dataset: From = None,
    revision: Revision = "",
) -> None:
    """Write the tasks of a month for a harness. A task that cannot be exported is reported and skipped."""
    from formulacode_dagster.library import Dataset
    from formulacode_dagster.models.errors import ItemFailure
    from formulacode_dagster.releasing.exports.formats import HarnessFormat

    name_of = HarnessFormat.named(format_).folder_name
    tasks = Dataset.load(dataset, revision=revision).of_month(month)
    wanted = {task_id: task for task_id, task in tasks.items() if not only or names_of(task.row) & set(only)}
    if not wanted:
        raise ConfigurationError(f"{month} has no such task", remedy="Look at the dataset: fc-data site")
    written = 0
    for task_id, task in wanted.items():
        try:
            path = task.export(format_, folder / name_of(task_id))
        except ItemFailure as failure:
            complain(str(failure))
            continue
        written += 1
        console.print(str(path), highlight=False, soft_wrap=True)
    console.print(f"{written} of {len(wanted)} tasks for {format_}", highlight=False)
    if not written:
        raise ConfigurationError("no task was exported", remedy="See the lines above")


def names_of(row: Any) -> set[str]:
    """Return the names by which a person may select the task of *row*."""
    return {row["task_id"], row["repo_name"], f"{row['repo_name']}#{row['pr_number']}"}


def evaluate(
    folder: TaskFolder,
    agent: Agent = None,
    diff: DiffFile = None,
    regrade: RecordedRun = None,
    keep: Keep = None,
) -> None:
    """Run one exported task here, with its own grader and no harness, and print the report.

    The agent works in a container of its own; only its changes of the checkout come into the fresh one that grades.
    """
    import json

    from formulacode_dagster.releasing.exports import evaluate as run
    from formulacode_dagster.releasing.exports.grader.terminal_reports import NOT_GRADABLE

    if sum(option is not None for option in (agent, diff, regrade)) > 1:
        raise ConfigurationError("more than one of --agent, --diff and --regrade", remedy="Take one of them")
    if keep is not None and (diff is not None or regrade is not None):
        raise ConfigurationError("--keep is for runs of an agent", remedy="Take it with --agent, or leave it out")
    with complaints.status("grading, which may take minutes"):
        if diff is not None:
            report = run.grade_diff(folder, run.read_diff(diff))
        elif regrade is not None:
            report = run.grade_diff(folder, run.recorded_diff(regrade))
        else:
            report = run.evaluate(folder, agent or run.ORACLE, keep=keep)
    console.print_json(json.dumps({name: value for name, value in report.items() if name != "samples"}))
    if report["reason"] == NOT_GRADABLE:
        raise ConfigurationError(f"{folder.name} cannot be graded here", why=report["detail"])
