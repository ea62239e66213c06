"""Facts about a released task: which runs are of it, and strata by which results are divided."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from formulacode_dagster.models.agent_run import AgentRun, TaskFacts
from formulacode_dagster.models.paths import PathKind, kind_of
from formulacode_dagster.releasing.dataset.index import range_of
from formulacode_dagster.sources.git.diff import split_patch

from .contamination import Cutoffs

PYTHON = "Python"
COMPILED = {
    **dict.fromkeys((".pyx", ".pxd", ".pxi"), "Cython"),
    **dict.fromkeys((".c", ".h"), "C"),
    **dict.fromkeys((".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx"), "C++"),
    **dict.fromkeys((".cu", ".cuh"), "Cuda"),
    **dict.fromkeys((".f", ".for", ".f77", ".f90", ".f95", ".f03", ".f08"), "Fortran"),
    ".rs": "Rust",
    ".go": "Go",
    ".zig": "Zig",
}
TEMPLATES = frozenset({".in", ".src"})
MARKS = ("task", "contaminated")
"""Fields of a run that `mark` sets."""


def facts_of(row: Mapping[str, Any]) -> TaskFacts:
    """Return the facts of a task from its *row* of the dataset."""
    patch = str(row["patch"]).encode(row["patch_encoding"])
    return TaskFacts(
        merged_at=row["pr_merged_at"],
        category=row["classification"],
        difficulty=row["difficulty"],
        language=language_of(file.path for file in split_patch(patch)),
        workload_source=row["workload_source"],
        size=range_of(row["speedup"]),
    )


def language_of(paths: Iterable[str]) -> str:
    """Return the compiled languages of the sources among *paths*, `C + Cython`; `Python` without any."""
    sources = [PurePosixPath(path) for path in paths if kind_of(path) is PathKind.CORE]
    suffixes = [(each.with_suffix("") if each.suffix in TEMPLATES else each).suffix.lower() for each in sources]
    return " + ".join(sorted({COMPILED[suffix] for suffix in suffixes if suffix in COMPILED})) or PYTHON


def statement_sha256(row: Mapping[str, Any]) -> str:
    """Return the hash of the statement that agents get for the task of *row*."""
    return hashlib.sha256(str(row["final_md"]).encode()).hexdigest()


def of_release(runs: Iterable[AgentRun], rows: Iterable[Mapping[str, Any]]) -> list[AgentRun]:
    """Return those of *runs* whose task is in the *rows* of a release, with the same image and statement."""
    released = {row["task_id"]: (str(row["image_digest"]), statement_sha256(row)) for row in rows}
    return [run for run in runs if released.get(run.task_id) == (run.image_digest, run.statement_sha256)]


def marked(runs: Sequence[AgentRun], rows: Iterable[Mapping[str, Any]], cutoffs: Cutoffs) -> list[AgentRun]:
    """Return *runs* with the facts of their tasks, from the *rows* of the release, and marks by *cutoffs*."""
    wanted = {run.task_id for run in runs}
    facts = {row["task_id"]: facts_of(row) for row in rows if row["task_id"] in wanted}
    return [mark(run, facts[run.task_id], cutoffs) if run.task_id in facts else run for run in runs]


def mark(run: AgentRun, facts: TaskFacts, cutoffs: Cutoffs) -> AgentRun:
    """Return *run* with the *facts* of its task and its mark of contamination."""
    contaminated = cutoffs.mark(run.agent, run.model, facts.merged_at)
    return run.model_copy(update={"task": facts, "contaminated": contaminated})
