"""Validity of tasks by machine and CPU family: by our rule, and as arXiv 2607.01211 counts it. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.measurement import Verdict
from formulacode_dagster.models.release import Replay, ReplayVerdict, standing

EVERYWHERE = "all machines"


class Validity(Frozen):
    """Tasks that are valid on a machine, on the machines of a CPU family, or on all."""

    where: str = Field(description="CPU model and cores, CPU family, or `all machines`")
    replays: int = Field(description="number of replays there")
    tasks: int = Field(description="tasks replayed there, those that could not be run included")
    confirmed: int = Field(description="tasks that each replay which could be run confirms")
    runnable: int = Field(description="tasks with such a replay")
    valid: int = Field(description="tasks that were `faster` in every replay; one that could not be run counts against")


def validity(replays: Mapping[str, Sequence[Replay]]) -> tuple[Validity, ...]:
    """Return the validity of tasks, with their *replays*, by machine, by CPU family, and on all machines, the last.

    Ours asks for the row's metric and the same return values too, and leaves out replays that could not be run.
    """
    if not any(replays.values()):
        return ()
    by_machine: dict[str, dict[str, list[Replay]]] = defaultdict(lambda: defaultdict(list))
    by_family: dict[str, dict[str, list[Replay]]] = defaultdict(lambda: defaultdict(list))
    for task, made in replays.items():
        for replay in made:
            if replay.machine:
                by_machine[replay.machine][task].append(replay)
                by_family[replay.cpu_family][task].append(replay)
    return (
        *(_counted(where, of_task.values()) for where, of_task in sorted(by_machine.items())),
        *(_counted(where, of_task.values()) for where, of_task in sorted(by_family.items()) if where not in by_machine),
        _counted(EVERYWHERE, replays.values()),
    )


def _counted(where: str, by_task: Iterable[Sequence[Replay]]) -> Validity:
    made = [replays for replays in by_task if replays]
    stands = [standing(replay.verdict for replay in replays) for replays in made]
    return Validity(
        where=where,
        replays=sum(map(len, made)),
        tasks=len(made),
        confirmed=stands.count(ReplayVerdict.CONFIRMED),
        runnable=len(stands) - stands.count(ReplayVerdict.COULD_NOT_RUN),
        valid=sum(all(map(_is_faster, replays)) for replays in made),
    )


def _is_faster(replay: Replay) -> bool:
    return (
        replay.verdict is not ReplayVerdict.COULD_NOT_RUN
        and replay.measurement is not None
        and replay.measurement.verdict is Verdict.FASTER
    )
