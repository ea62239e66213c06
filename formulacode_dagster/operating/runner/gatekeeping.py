"""Gates across runs: a consumer checks them before it starts."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.models.check import CheckVerdict
from formulacode_dagster.models.errors import GateClosedError
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.store.checks import verdicts
from formulacode_dagster.operating.store.database import Database

from .failures import FAILURES_WITHIN_BUDGET


def require_open(database: Database, month: str, gates: Sequence[tuple[Stage, str]]) -> None:
    """Raise GateClosedError unless each of *gates* (stage, check) was judged and passed for *month*, or only warns.

    A gate without a verdict is closed.
    """
    with database.transaction() as connection:
        judged = {(verdict.stage, verdict.check): verdict for verdict in verdicts(connection, month)}
    for stage, check in gates:
        _require(judged.get((stage, check)), stage, check, month)


def _require(verdict: CheckVerdict | None, stage: Stage, check: str, month: str) -> None:
    if verdict is None:
        raise GateClosedError(
            f"the gate {stage}/{check} is not judged for {month}",
            why=f"{stage} never ran with its checks, is running now, or its last run ended before them",
            remedy=f"Materialize {stage} of {month} with its checks first",
        )
    if verdict.blocking and not verdict.passed:
        offenders = f" ({', '.join(verdict.offenders[:5])})" if verdict.offenders else ""
        remedy = f"Mend the cause, materialize {stage} of {month} again with its checks, then this asset"
        if check == FAILURES_WITHIN_BUDGET:
            remedy += f"; or accept it as it is: fc-data accept --month {month} --stage {stage} --by NAME --reason WHY"
        raise GateClosedError(
            f"the gate {stage}/{check} is shut for {month}", why=f"{verdict.summary}{offenders}", remedy=remedy
        )
