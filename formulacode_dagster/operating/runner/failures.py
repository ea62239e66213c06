"""Failure budgets: whether a stage failed too much of a month, and acceptance by a person."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from sqlalchemy import Connection

from formulacode_dagster.models.check import Acceptance, CheckFinding, CheckVerdict
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.items import ItemKind, ItemState, Stage
from formulacode_dagster.models.reasons import SCREENED_OUT, SkipReason
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.acceptances import acceptances, add_acceptance
from formulacode_dagster.operating.store.checks import record_verdict
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.ledger import Ending

FAILURES_WITHIN_BUDGET = "failures_within_budget"
"""Name of the check."""
_KINDS = {
    ItemKind.REPOSITORY: ("repository", "repositories"),
    ItemKind.PULL_REQUEST: ("pull request", "pull requests"),
}
_ROUNDING = 1e-9


def failures_within_budget(
    endings: Sequence[Ending],
    failed: Sequence[str],
    budget: float,
    earlier: Mapping[ItemKind, str],
    accepted: Acceptance | None = None,
    *,
    is_part: bool = False,
) -> CheckFinding:
    """Pass unless more than *budget* (a share) of one kind of item failed, or none is done although some were before.

    *endings* are those of one stage and month, *failed* names the failures; *earlier* is the newest month before it in
    which some were done, by kind. Screened-out items were never tried, and a partly requested month (*is_part*, or
    items not asked for) may have nothing done. A stage over budget passes if it was *accepted* and is no worse since.
    """
    faults = [
        fault for kind in _KINDS if (fault := _fault(endings, kind, budget, None if is_part else earlier.get(kind)))
    ]
    done, lost, tried = _count(endings, ItemState.DONE), _count(endings, ItemState.FAILED), _tried(endings)
    summary = "; ".join(faults) or f"{lost} of {tried} items failed, {budget:.0%} may"
    is_accepted = bool(faults) and accepted is not None and accepted.covers(failed=lost, done=done)
    if is_accepted and accepted is not None:
        summary = f"{summary}; accepted by {accepted.accepted_by}: {accepted.reason}"
    reasons: Counter[str] = Counter()
    for ending in endings:
        reasons.update({ending.reason: ending.count} if ending.state is ItemState.FAILED else {})
    judgement = CheckFinding.by_offenders(
        summary,
        failed,
        {"done": done, "failed": lost, "tried": tried, "budget": budget},
        {reason: {"items": count} for reason, count in reasons.most_common()},
    )
    return judgement.model_copy(update={"passed": not faults or is_accepted})


def judge_failures(
    connection: Connection, month: str, stage: Stage, budget: float, *, is_part: bool = False
) -> CheckFinding:
    """`failures_within_budget` of *stage*, as the ledger has *month* now; *is_part* after a run of some items only."""
    done_before = {
        kind: months[-1]
        for kind in _KINDS
        if (months := ledger.months_with_done(connection, stage, kind, before=month))
    }
    taken = [acceptance for acceptance in acceptances(connection, month) if acceptance.stage is stage]
    return failures_within_budget(
        [ending for ending in ledger.endings(connection, month) if ending.stage is stage],
        ledger.items_in_state(connection, month, stage, ItemState.FAILED),
        budget,
        done_before,
        taken[-1] if taken else None,
        is_part=is_part,
    )


def accept_failures(
    database: Database, month: str, stage: Stage, budget: float, *, by: str, reason: str, run_id: str
) -> CheckVerdict:
    """Accept the result of *stage* for *month* and open its gate; the acceptance is stored with name and reason.

    Raises ConfigurationError if a name or reason is missing, or there is nothing to accept.
    """
    by, reason = by.strip(), reason.strip()
    if not by or not reason:
        raise ConfigurationError(
            f"{stage} of {month} cannot be accepted", why="it takes a name and a reason", remedy="Give both"
        )
    with database.transaction() as connection:
        judged = judge_failures(connection, month, stage, budget)
        if judged.passed:
            raise ConfigurationError(f"nothing of {stage} of {month} is to be accepted", why=judged.summary)
        add_acceptance(
            connection,
            Acceptance(
                month=month,
                stage=stage,
                accepted_at=datetime.now(tz=UTC),
                accepted_by=by,
                reason=reason,
                summary=judged.summary,
                failed=int(judged.figures["failed"]),
                done=int(judged.figures["done"]),
            ),
        )
        judgement = judge_failures(connection, month, stage, budget)
        verdict = CheckVerdict(**dict(judgement), stage=stage, month=month, check=FAILURES_WITHIN_BUDGET, blocking=True)
        record_verdict(connection, verdict, run_id)
    return verdict


def _fault(endings: Sequence[Ending], kind: ItemKind, budget: float, earlier: str | None) -> str:
    """Why items of one kind are over *budget*; empty when they are not."""
    one_kind = [ending for ending in endings if ending.kind is kind]
    singular, plural = _KINDS[kind]
    failed, tried = _count(one_kind, ItemState.FAILED), _tried(one_kind)
    if tried and failed / tried > budget + _ROUNDING:
        return f"{failed} of {tried} {plural} failed, {budget:.0%} may"
    is_whole = not any(ending.reason == SkipReason.NOT_ASKED for ending in endings)
    if earlier and is_whole and not _count(one_kind, ItemState.DONE):
        return f"no {singular} is done, in {earlier} some were"
    return ""


def _count(endings: Sequence[Ending], state: ItemState) -> int:
    return sum(ending.count for ending in endings if ending.state is state)


def _tried(endings: Sequence[Ending]) -> int:
    return sum(
        ending.count
        for ending in endings
        if ending.state is not ItemState.SKIPPED and ending.reason not in SCREENED_OUT
    )
