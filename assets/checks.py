"""Declares the check of a month, for Dagster and the ledger.

A check stands in its asset's file: `@month_check(blocking=…)` over a function that passes the month's rows to a verdict
function of the domain. Its name is the function's, its description the docstring. The verdict is stored in the ledger's
database: Dagster's blocking check stops only its own run, while a consumer in a later run reads the stored verdict.
"""

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dagster as dg

from formulacode_dagster.models.check import CheckFinding, CheckVerdict, Doubt
from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.operating.runner.failures import judge_failures
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import Artifact, M
from formulacode_dagster.operating.store.checks import record_verdict
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.pull_requests import done_items
from resources.settings import read_settings

from .partitions import MONTHS, month_of
from .stopping import stoppable


@dataclass(frozen=True)
class JudgedMonth:
    """The month of an asset that a check judges, and the source of its rows."""

    database: Database
    stage: Stage
    key: str
    run_id: str
    is_part: bool = False
    """The run was asked for some items only."""

    def rows(self, artifact: Artifact[M]) -> list[M]:
        """All rows of the month."""
        with self.database.transaction() as connection:
            return artifact.read(connection, self.key)

    def done_rows(self, artifact: Artifact[M], stage: Stage) -> list[M]:
        """Rows of the items that *stage* ended as done."""
        with self.database.transaction() as connection:
            keys = done_items(connection, self.key, stage)
            return list(artifact.read_keys(connection, self.key, keys).values())

    def items(self, stage: Stage, state: ItemState) -> list[str]:
        """Names of the items of *stage* in *state*."""
        with self.database.transaction() as connection:
            return ledger.items_in_state(connection, self.key, stage, state)


@dataclass(frozen=True)
class MonthCheck:
    """One check: its function, and whether it blocks what comes after."""

    judge: Callable[..., CheckFinding]
    blocking: bool
    pool: str | None = None

    @property
    def name(self) -> str:
        """Name of the judging function."""
        return self.judge.__name__

    def verdict(self, month: JudgedMonth, **resources: Any) -> CheckVerdict:
        """Judge *month* of an asset, and store the verdict."""
        judgement = self.judge(month, **resources)
        blocking = self.blocking and not isinstance(judgement, Doubt)
        named = {"stage": month.stage, "month": month.key, "check": self.name, "blocking": blocking}
        verdict = CheckVerdict(**dict(judgement), **named)
        with month.database.transaction() as connection:
            record_verdict(connection, verdict, month.run_id)
        return verdict

    def definition(self, stage: Stage) -> dg.AssetChecksDefinition:
        """The check as Dagster runs it, month by month, on the asset of *stage*."""
        # besides the month, the judge names the resources it needs
        resources = list(inspect.signature(self.judge).parameters)[1:]

        @partitioned_check(
            asset=stage.value,
            name=self.name,
            blocking=self.blocking,
            description=inspect.getdoc(self.judge),
            partitions_def=MONTHS,
            required_resource_keys={"postgres", *resources},
            pool=self.pool,
        )
        def evaluate(context: dg.AssetCheckExecutionContext) -> dg.AssetCheckResult:
            given = context.op_execution_context.resources
            try:
                month = JudgedMonth(
                    given.postgres.database(),
                    stage,
                    month_of(context).key,
                    context.run.run_id,
                    is_part=_is_part(context.run, stage),
                )
                with stoppable(context):
                    verdict = self.verdict(month, **{name: getattr(given, name) for name in resources})
            except FormulaCodeError as error:
                raise dg.Failure(description=str(error), allow_retries=False) from error
            return result_of(verdict, blocking=verdict.blocking)

        return evaluate


def partitioned_check(**options: Any) -> Callable[[Callable[..., dg.AssetCheckResult]], dg.AssetChecksDefinition]:
    """`@dg.asset_check` for a partitioned asset, without the warning that this is a preview (Dagster 1.13)."""

    def declare(evaluate: Callable[..., dg.AssetCheckResult]) -> dg.AssetChecksDefinition:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", dg.PreviewWarning)
            return dg.asset_check(**options)(evaluate)

    return declare


def month_check(*, blocking: bool, pool: str | None = None) -> Callable[[Callable[..., CheckFinding]], MonthCheck]:
    """Declare a check: the function takes a `JudgedMonth`, and resources by name; it may raise FormulaCodeError."""
    return lambda judge: MonthCheck(judge, blocking, pool)


@month_check(blocking=True)
def failures_within_budget(month: JudgedMonth) -> CheckFinding:
    """No larger share of the attempted items failed than FC_FAILURE_BUDGET allows; if earlier months had some done,
    this has.

    A person may accept a month as it is, by name and reason: `fc-data accept`.
    """
    with month.database.transaction() as connection:
        return judge_failures(
            connection, month.key, month.stage, read_settings().failure_budget_of(month.stage), is_part=month.is_part
        )


def _is_part(run: dg.DagsterRun, stage: Stage) -> bool:
    ops: Any = run.run_config.get("ops", {})
    return bool(ops.get(stage.value, {}).get("config", {}).get("only"))


def result_of(verdict: CheckFinding, *, blocking: bool) -> dg.AssetCheckResult:
    """Return *verdict* as Dagster shows it: an error if it blocks, else a warning."""
    metadata: dict[str, Any] = dict(verdict.figures)
    if verdict.offenders:
        metadata["offending"] = _table([{"offender": offender} for offender in verdict.offenders])
    if verdict.tally:
        metadata["tally"] = _table([{"name": name, **counts} for name, counts in verdict.tally.items()])
    return dg.AssetCheckResult(
        passed=verdict.passed,
        severity=dg.AssetCheckSeverity.ERROR if blocking else dg.AssetCheckSeverity.WARN,
        description=verdict.summary,
        metadata=metadata,
    )


def _table(records: list[dict[str, Any]]) -> dg.TableMetadataValue:
    return dg.MetadataValue.table([dg.TableRecord(record) for record in records])
