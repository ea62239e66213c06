"""Takes the results of `./replay`: checked against the release, judged from their samples, stored beside ours."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError
from sqlalchemy import Connection

from formulacode_dagster.measuring.measurement.measure import measurement_row
from formulacode_dagster.measuring.measurement.plan import RULE_VERSION
from formulacode_dagster.measuring.measurement.procedure import Procedure
from formulacode_dagster.measuring.measurement.relevance import BenchmarkCandidate
from formulacode_dagster.measuring.measurement.returned import of_two_calls
from formulacode_dagster.measuring.measurement.sampling import Taken, cut_short
from formulacode_dagster.measuring.measurement.statistics.verdict import judge, taken_by
from formulacode_dagster.models.base import first_fault
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.measurement import Arm, Measurement
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.release import Replay, ReplayVerdict
from formulacode_dagster.operating.store.measurements import add_replay, replays_of

from .packed import PackedResult, ReplayResults, SealedResults
from .released import TaskToReplay, image_of
from .verdict import described, verdict_of

MEASURED = "measured"


@dataclass
class Takings:
    """What became of the replays in a file, by the id of each."""

    taken: list[Replay] = field(default_factory=list)
    known: list[str] = field(default_factory=list)
    """Tasks of replays that were taken before."""
    refused: dict[str, str] = field(default_factory=dict)
    """Why, by task."""


def read_results(content: bytes, where: str) -> ReplayResults:
    """Read the file that `./replay` wrote; raises ConfigurationError if it is none, or not as it was written."""
    try:
        sealed = SealedResults.model_validate_json(content)
        found = hashlib.sha256(sealed.results.encode()).hexdigest()
        if found != sealed.sha256:
            raise ConfigurationError(
                f"{where} is not as ./replay wrote it",
                why=f"its results hash to {found}, not to {sealed.sha256}",
                remedy="Copy the file again",
            )
        return ReplayResults.model_validate_json(sealed.results)
    except ValidationError as error:
        raise ConfigurationError(
            f"{where} holds no results of ./replay", why=first_fault(error), remedy="Name the file that --results wrote"
        ) from error


def take(
    connection: Connection, results: ReplayResults, tasks: Sequence[TaskToReplay], *, release: str, destination: str
) -> Takings:
    """Store the replays in *results* of *tasks*, those of *release*; each is stored once, however often it is taken.

    A replay of an unknown task, or of another patch, procedure or image than the row's, is refused.
    """
    by_id = {task.task_id: task for task in tasks}
    known = {replay.run_id for made in replays_of(connection, results.month).values() for replay in made}
    takings = Takings()
    for result in results.replays:
        if result.id in known:
            takings.known.append(result.task_id)
            continue
        try:
            task = by_id.get(result.task_id)
            if task is None:
                raise _refused(result, f"{release} has no such task")
            replay = _replay(results, result, task, release, destination)
        except ItemFailure as failure:
            takings.refused[f"{result.task_id} ({result.id[:8]})"] = str(failure)
            continue
        add_replay(connection, replay)
        known.add(result.id)
        takings.taken.append(replay)
    return takings


def _replay(results: ReplayResults, result: PackedResult, task: TaskToReplay, release: str, destination: str) -> Replay:
    procedure = task.procedure()
    _require_same(result, task, procedure)
    measured: Measurement | None = None
    failure: FailureKind | None
    if result.outcome == MEASURED:
        measured = _judged(result, task, procedure)
        verdict, failure = verdict_of(measured, task.metric)
        detail = described(measured)
    else:
        try:
            verdict, failure = ReplayVerdict.COULD_NOT_RUN, FailureKind(result.outcome)
        except ValueError as error:
            raise _refused(result, f"{result.outcome!r} is no known outcome", FailureKind.UNREADABLE) from error
        detail = result.message
    return Replay(
        month=results.month,
        task_id=task.task_id,
        attempt=1,
        release=release,
        destination=destination,
        replayed_at=result.ended,
        run_id=result.id,
        verdict=verdict,
        failure=failure,
        detail=detail,
        is_same_harness=result.harness_sha256 == procedure.harness_sha256,
        measurement=measured,
        packed_on=results.machine,
        entered_by=result.entered_by,
        released_speedup=task.speedup,
        released_instructions_ratio=task.instructions_ratio,
    )


def _require_same(result: PackedResult, task: TaskToReplay, procedure: Procedure) -> None:
    """Raise ItemFailure unless the row's task was replayed, and can be judged here."""
    expected = {
        "procedure": (result.procedure_sha256, hashlib.sha256(task.procedure_json.encode()).hexdigest()),
        "patch": (result.patch_sha256, procedure.patch_sha256),
        "image": (result.image, task.image_digest) if task.image_digest else (result.image_id, procedure.image_digest),
    }
    for what, (found, wanted) in expected.items():
        if found != wanted:
            raise _refused(result, f"its {what} is {found}, and the row's {wanted}")
    if procedure.rule.version != RULE_VERSION:
        why = f"the rule's version is {procedure.rule.version}, and here {RULE_VERSION}"
        raise _refused(result, why, FailureKind.RULE_UNKNOWN)


def _judged(result: PackedResult, task: TaskToReplay, procedure: Procedure) -> Measurement:
    """Judge the samples of *result* as if they had been looked at while they were taken."""
    _require_complete(result, procedure)
    candidates = [
        BenchmarkCandidate({arm: result.surveys[arm][name] for arm in Arm}, executes_change=True)
        for name in procedure.benchmarks
    ]
    rule, why = procedure.rule, result.cut_short
    quantities = {candidate.name: candidate.quantity for candidate in candidates}
    traced: dict[str, bool | None] = dict.fromkeys(procedure.benchmarks, True)
    for look, at in enumerate(rule.looks):
        seen = {name: taken_by(at, result.samples[name]) for name in procedure.benchmarks}
        judged = judge(seen, rule, look, quantities, traced=traced)
        if result.rounds < at.units:
            judged = cut_short(judged, why)
        if judged.is_decided or result.rounds < at.units:
            break
    rounds = min(result.rounds, at.units)
    conditions = tuple(each for each in result.conditions if each.round < rounds)
    taken = Taken(judged, rule, look, rounds, (), (), conditions, result.machine)
    image = image_of(task, procedure, procedure.image_digest, location=result.image)
    row = measurement_row(image, procedure.suite_files, candidates, taken, seconds=result.seconds)
    counts = {name: count for name, count in result.instructions.items() if name in procedure.benchmarks}
    row = row.model_copy(update={"run_id": result.id, "instructions": counts})
    return row.model_copy(update={"returned": _returned(result, procedure)}) if row.is_faster else row


def _require_complete(result: PackedResult, procedure: Procedure) -> None:
    """Raise ItemFailure unless each benchmark has one sample of every arm in each of the rounds, and ran on all."""
    most = procedure.rule.looks[-1].units
    if not 2 <= result.rounds <= most:
        raise _refused(result, f"it has {result.rounds} rounds of {most}", FailureKind.UNREADABLE)
    expected = {(number, arm) for number in range(result.rounds) for arm in Arm}
    for name in procedure.benchmarks:
        samples = result.samples.get(name, ())
        if len(samples) != len(expected) or {(sample.round, sample.arm) for sample in samples} != expected:
            raise _refused(result, f"samples of {name} are missing, or too many", FailureKind.UNREADABLE)
        if any(name not in result.surveys.get(arm, {}) for arm in Arm):
            raise _refused(result, f"{name} was not run once on every arm", FailureKind.UNREADABLE)


def _returned(result: PackedResult, procedure: Procedure) -> Mapping[str, object]:
    base, oracle, control, again = (
        result.returned.get("base", {}),
        result.returned.get("oracle", {}),
        result.returned.get("control", {}),
        result.returned.get("again", {}),
    )
    return {
        name: of_two_calls((base.get(name), control.get(name)), (oracle.get(name), again.get(name)))
        for name in procedure.benchmarks
    }


def _refused(result: PackedResult, why: str, kind: FailureKind = FailureKind.MISMATCH) -> ItemFailure:
    return ItemFailure(kind, f"a replay of {result.task_id} is not taken", why=why)
