"""A gate holds across runs: a consumer asks here before it starts."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.models.check import GateVerdict
from formulacode_dagster.models.errors import GateClosedError
from formulacode_dagster.models.items import Stage
from formulacode_dagster.store import checks as gates
from formulacode_dagster.store.database import Database


def require_open(
    database: Database, month: str, upstream: Sequence[Stage], expected: dict[Stage, tuple[str, ...]]
) -> None:
    """Raise GateClosedError unless every blocking gate of the *upstream* stages was judged and passed for *month*.

    *expected* names the blocking checks of each stage, so that a gate nobody judged is shut too.
    """
    for stage in upstream:
        with database.transaction() as connection:
            judged = {verdict.check: verdict for verdict in gates.verdicts(connection, month, stage)}
        for check in expected.get(stage, ()):
            _require(judged.get(check), stage, check, month)


def _require(verdict: GateVerdict | None, stage: Stage, check: str, month: str) -> None:
    if verdict is None:
        raise GateClosedError(
            f"the gate {stage}/{check} was never judged for {month}",
            remedy=f"Materialize {stage} of {month} with its checks first",
        )
    if not verdict.passed:
        offenders = f" ({', '.join(verdict.offenders[:5])})" if verdict.offenders else ""
        raise GateClosedError(
            f"the gate {stage}/{check} is shut for {month}",
            why=f"{verdict.summary}{offenders}",
            remedy=f"Mend the cause, materialize {stage} of {month} again with its checks, then this asset",
        )
