"""Validity by machine, CPU family and both rules."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from formulacode_dagster.models.measurement import InstructionCount, Returned, Verdict
from formulacode_dagster.models.release import Replay, ReplayMachine, ReplayNote
from formulacode_dagster.releasing.dataset.validity import Validity, validity
from tests.records import MONTH, make_measurement

XEON = ReplayMachine(
    model="Xeon", vendor="GenuineIntel", family="6", model_number="143", cores=16, kernel="6.1", architecture="x86_64"
)


def replay(verdict: str, machine: str, measured: Verdict | None = None, **fields: object) -> Replay:
    facts: dict[str, object] = {
        "month": MONTH,
        "task_id": "a__b-1",
        "attempt": 1,
        "release": "formulacode@2026-03",
        "destination": "hub:acme/tasks",
        "replayed_at": datetime(2026, 4, 1, tzinfo=UTC),
        "run_id": "run",
        "verdict": verdict,
        "detail": "",
        "is_same_harness": True,
        "measurement": make_measurement({"bench.a": 2.0}, verdict=measured, machine=machine) if measured else None,
    }
    return Replay.model_validate({**facts, **fields})


def notes(replays: dict[str, list[Replay]]) -> dict[str, list[ReplayNote]]:
    return {task: [each.note for each in made] for task, made in replays.items()}


def counted(replays: dict[str, list[Replay]]) -> dict[str, tuple[int, ...]]:
    return {
        each.where: (each.tasks, each.replays, each.confirmed, each.runnable, each.valid)
        for each in validity(notes(replays))
    }


def test_tasks_are_counted_by_machine_by_family_and_on_all() -> None:
    here, there = "EPYC, 2 cores, x86_64", "Xeon, 16 cores, x86_64"
    replays = {
        "a": [replay("confirmed", here, Verdict.FASTER), replay("confirmed", there, Verdict.FASTER, packed_on=XEON)],
        "b": [
            replay("confirmed", here, Verdict.FASTER),
            replay("not_confirmed", there, Verdict.UNCHANGED, packed_on=XEON),
        ],
    }
    assert counted(replays) == {
        here: (2, 2, 2, 2, 2),
        there: (2, 2, 1, 2, 1),
        "EPYC": (2, 2, 2, 2, 2),
        "GenuineIntel family 6 model 143": (2, 2, 1, 2, 1),
        "all machines": (2, 4, 1, 2, 1),
    }


def test_a_replay_that_could_not_be_run_counts_against_a_task_only_by_the_other_rule() -> None:
    there = "Xeon, 16 cores, x86_64"
    made = [replay("could_not_run", there, packed_on=XEON), replay("confirmed", there, Verdict.FASTER, packed_on=XEON)]
    assert counted({"a": made})["all machines"] == (1, 2, 1, 1, 0)


def test_a_task_that_returns_something_else_is_faster_and_not_confirmed() -> None:
    other = {"measurement": make_measurement({"bench.a": 2.0}, returned={"bench.a": Returned.DIFFERENT})}
    assert counted({"a": [replay("not_confirmed", "", **other)]})["all machines"] == (1, 1, 0, 1, 1)


def test_without_replays_there_is_nothing_to_say() -> None:
    assert validity({}) == ()


def everywhere(*made: Replay) -> Validity:
    return validity(notes({str(number): [each] for number, each in enumerate(made)}))[-1]


def measured(
    speedup: float, row: float | None, counts: tuple[int, int] = (0, 0), of_row: float | None = None
) -> Replay:
    base, oracle = counts
    taken = make_measurement({"bench.a": speedup}).model_copy(
        update={"instructions": {"bench.a": InstructionCount(base=base, oracle=oracle)}}
    )
    return replay("confirmed", "", measurement=taken, released_speedup=row, released_instructions_ratio=of_row)


def test_speedups_are_compared_with_those_of_the_replayed_rows() -> None:
    told = everywhere(measured(2.0, 4.0), measured(3.0, 3.0), measured(9.0, 6.0))
    assert (told.ratio, told.rank) == (pytest.approx(1.0), pytest.approx(0.5))
    assert everywhere(measured(2.0, 2.0), measured(3.0, 4.0), measured(9.0, 6.0)).rank == pytest.approx(1.0)
    # two points are always in a line, equal speed-ups have no order, and older replays do not know their rows
    assert everywhere(measured(2.0, 2.0), measured(3.0, 4.0)).rank is None
    assert everywhere(*(measured(2.0, 2.0 + number) for number in range(3))).rank is None
    assert everywhere(measured(2.0, None)).cells["speed-up there / in the row"] == "–"


def test_instructions_are_the_same_within_a_thousandth() -> None:
    same, other, not_counted = (
        measured(2.0, 2.0, (20_010, 10_000), 2.0),
        measured(2.0, 2.0, (20_030, 10_000), 2.0),
        measured(2.0, 2.0, of_row=2.0),
    )
    told = everywhere(same, other, not_counted, measured(2.0, 2.0, (2, 1)))
    assert (told.same_instructions, told.counted) == (1, 2)
    assert everywhere(not_counted).cells["same instructions"] == "–"


def test_notes_from_before_families_were_stored_are_counted_by_the_model() -> None:
    old = replay("confirmed", "EPYC, 2 cores, x86_64", Verdict.FASTER).note.model_copy(update={"cpu_family": ""})
    assert [each.where for each in validity({"a": [old]})] == ["EPYC, 2 cores, x86_64", "EPYC", "all machines"]
