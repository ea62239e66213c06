"""Validity of tasks by machine and CPU family: by our rule, and as arXiv 2607.01211 counts it. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence
from statistics import StatisticsError, correlation, geometric_mean, median

from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.measurement import Verdict
from formulacode_dagster.models.release import ReplayNote, ReplayVerdict, standing

EVERYWHERE = "all machines"
SAME_INSTRUCTIONS = 0.001
"""Relative difference of two ratios of instructions that are the same; a repetition differs by less than 0.0001."""

LEAST_RANKED = 3


class Validity(Frozen):
    """Tasks that are valid on a machine, on the machines of a CPU family, or on all."""

    where: str = Field(description="CPU model and cores, CPU family, or `all machines`")
    replays: int = Field(description="number of replays there")
    tasks: int = Field(description="tasks replayed there, those that could not be run included")
    confirmed: int = Field(description="tasks that each replay which could be run confirms")
    runnable: int = Field(description="tasks with such a replay")
    valid: int = Field(description="tasks that were `faster` in every replay; one that could not be run counts against")
    ratio: float | None = Field(default=None, description="median over tasks of the speed-up there / in the row")
    rank: float | None = Field(default=None, description="Spearman's correlation of both; null below three tasks")
    counted: int = Field(default=0, description="tasks whose instructions were counted there and for the row")
    same_instructions: int = Field(default=0, description="of these, tasks with the same ratio in each replay")

    @property
    def cells(self) -> dict[str, str]:
        """Text of a table's cells by heading."""
        return {
            "on": self.where,
            "tasks": str(self.tasks),
            "replays": str(self.replays),
            "confirmed": f"{self.confirmed} of {self.runnable}",
            "faster in every replay": f"{self.valid} of {self.tasks}",
            "speed-up there / in the row": "–" if self.ratio is None else f"{self.ratio:.2f}",
            "rank correlation": "–" if self.rank is None else f"{self.rank:.2f}",
            "same instructions": f"{self.same_instructions} of {self.counted}" if self.counted else "–",
        }


def validity(replays: Mapping[str, Sequence[ReplayNote]]) -> tuple[Validity, ...]:
    """Return the validity of tasks, with their *replays*, by machine, by CPU family, and on all machines, the last.

    Ours asks for the row's metric and the same return values too, and leaves out replays that could not be run.
    """
    if not any(replays.values()):
        return ()
    by_machine: dict[str, dict[str, list[ReplayNote]]] = defaultdict(lambda: defaultdict(list))
    by_family: dict[str, dict[str, list[ReplayNote]]] = defaultdict(lambda: defaultdict(list))
    for task, made in replays.items():
        for note in made:
            if note.machine:
                by_machine[note.machine][task].append(note)
                # notes of older releases have no family
                by_family[note.cpu_family or note.machine.partition(",")[0]][task].append(note)
    return (
        *(_counted(where, of_task) for where, of_task in sorted(by_machine.items())),
        *(_counted(where, of_task) for where, of_task in sorted(by_family.items()) if where not in by_machine),
        _counted(EVERYWHERE, replays),
    )


def _counted(where: str, by_task: Mapping[str, Sequence[ReplayNote]]) -> Validity:
    made = [notes for notes in by_task.values() if notes]
    stands = [standing(note.verdict for note in notes) for notes in made]
    pairs = [pair for notes in made if (pair := _speedups(notes))]
    compared = [same for notes in made if (same := _has_same_instructions(notes)) is not None]
    return Validity(
        where=where,
        replays=sum(map(len, made)),
        tasks=len(made),
        confirmed=stands.count(ReplayVerdict.CONFIRMED),
        runnable=len(stands) - stands.count(ReplayVerdict.COULD_NOT_RUN),
        valid=sum(all(map(_is_faster, notes)) for notes in made),
        ratio=median(there / released for there, released in pairs) if pairs else None,
        rank=_rank_correlation(pairs),
        counted=len(compared),
        same_instructions=sum(compared),
    )


def _is_faster(note: ReplayNote) -> bool:
    return note.verdict is not ReplayVerdict.COULD_NOT_RUN and note.measured is Verdict.FASTER


def _speedups(notes: Sequence[ReplayNote]) -> tuple[float, float] | None:
    """Geometric means of a task's speed-ups in replays and in the replayed rows; None if nothing was measured."""
    pairs = [
        (note.speedup, note.released_speedup)
        for note in notes
        if note.speedup and note.released_speedup and note.verdict is not ReplayVerdict.COULD_NOT_RUN
    ]
    return (geometric_mean(there for there, _ in pairs), geometric_mean(row for _, row in pairs)) if pairs else None


def _has_same_instructions(notes: Sequence[ReplayNote]) -> bool | None:
    """True if each replay counted the row's ratio of instructions; None if it was not counted on both sides."""
    same = [
        abs(note.instructions_ratio / note.released_instructions_ratio - 1) <= SAME_INSTRUCTIONS
        for note in notes
        if note.instructions_ratio and note.released_instructions_ratio
    ]
    return all(same) if same else None


def _rank_correlation(pairs: Sequence[tuple[float, float]]) -> float | None:
    if len(pairs) < LEAST_RANKED:
        return None
    try:
        return correlation(*map(_ranks, zip(*pairs, strict=True)))
    except StatisticsError:
        # all of one side are equal
        return None


def _ranks(values: Sequence[float]) -> list[float]:
    """Ranks of *values*; equal ones share the mean of theirs."""
    ordered = sorted(values)
    return [(bisect_left(ordered, value) + bisect_right(ordered, value) + 1) / 2 for value in values]
