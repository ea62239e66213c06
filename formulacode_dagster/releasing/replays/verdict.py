"""The outcome of a replay for its task, and the replays of a month of the release. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from formulacode_dagster.measuring.measurement.stage import summary_of
from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.measurement import Measurement, Metric
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.release import Replay, ReplayVerdict, standing

LEAST_CONFIRMED = 0.95
"""Share of the tasks that could be replayed."""


def verdict_of(measured: Measurement, metric: Metric = Metric.TIME) -> tuple[ReplayVerdict, FailureKind | None]:
    """Return the verdict of a measurement by the row's own rule for a task of *metric*, or why there is none."""
    if measured.disturbed:
        return ReplayVerdict.COULD_NOT_RUN, FailureKind.DISTURBED
    is_confirmed = measured.is_faster and measured.metric is metric and not measured.returning_other
    return ReplayVerdict.CONFIRMED if is_confirmed else ReplayVerdict.NOT_CONFIRMED, None


def described(measured: Measurement) -> str:
    """Return the verdict of a measurement with its figures and machine, in a sentence."""
    others = f"; {', '.join(measured.returning_other)} returns something else" if measured.returning_other else ""
    return f"{measured.verdict.replace('_', '-')}: {summary_of(measured)}{others}; on {measured.machine}"


def tasks_are_confirmed(replays: Mapping[str, Sequence[Replay]]) -> CheckFinding:
    """Pass when `LEAST_CONFIRMED` of the tasks that could be replayed, by task, are confirmed by each of their replays.

    Also when nothing was replayed; not when nothing that was tried could be run, since nothing is shown then.
    """
    stands = {task: standing(replay.verdict for replay in made) for task, made in replays.items()}
    counts = Counter(stands.values())
    confirmed, lost = counts[ReplayVerdict.CONFIRMED], counts[ReplayVerdict.NOT_CONFIRMED]
    ran = confirmed + lost
    share = confirmed / ran if ran else 0.0
    if not stands:
        summary = "nothing was replayed"
    elif not ran:
        summary = f"none of {len(stands)} tasks could be replayed"
    else:
        summary = f"{confirmed} of {ran} tasks that could be replayed are confirmed, {LEAST_CONFIRMED:.0%} should be"
        summary += f"; {len(stands) - ran} could not be run" if len(stands) > ran else ""
    offenders = sorted(task for task, stand in stands.items() if stand is ReplayVerdict.NOT_CONFIRMED)
    figures = {"confirmed": confirmed, "ran": ran, "tasks": len(stands), "replays": sum(map(len, replays.values()))}
    reasons = Counter(replay.failure for made in replays.values() for replay in made if replay.failure)
    tally = {kind.value: {"replays": count} for kind, count in reasons.most_common()}
    judged = CheckFinding.by_offenders(summary, offenders, {**figures, "share": share}, tally)
    return judged.model_copy(update={"passed": not stands or share >= LEAST_CONFIRMED})
