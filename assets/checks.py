"""The gates: asset checks whose verdicts are pure functions, kept in the ledger so that they hold across runs.

`GATES` is the one list of them. A consumer reads the verdicts before it starts (`items.gatekeeping`), since Dagster's
blocking check stops only its own run.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import dagster as dg

from formulacode_dagster.models.check import GateVerdict
from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.models.items import Stage
from formulacode_dagster.store.checks import record_verdict
from resources.hub import HubResource
from resources.postgres import PostgresResource

from . import verdicts
from .partitions import MONTHS, month_of

Judge = Callable[[verdicts.Evidence], GateVerdict]


@dataclass(frozen=True)
class Gate:
    """One check: of which asset, under which name, what it says in a sentence, and who judges."""

    stage: Stage
    check: str
    blocking: bool
    description: str
    judge: Judge


GATES: tuple[Gate, ...] = (
    Gate(Stage.REPOSITORIES, "not_empty", True, "At least one repository is tracked.", verdicts.not_empty),
    Gate(
        Stage.REPOSITORIES,
        "every_repository_resolves",
        False,
        "Every tracked repository still exists on GitHub.",
        verdicts.every_repository_resolves,
    ),
    Gate(
        Stage.PULL_REQUESTS,
        "counts_match",
        True,
        "As many merged pull requests are stored as GitHub reports, repository by repository.",
        verdicts.counts_match,
    ),
    Gate(
        Stage.PULL_REQUESTS,
        "window_and_shas_valid",
        True,
        "Every merge lies in the month, every SHA is one, nothing is stored twice.",
        verdicts.window_and_shas_valid,
    ),
    Gate(
        Stage.CLASSIFICATIONS,
        "every_candidate_has_verdict",
        True,
        "Every pull request has a verdict, a rejection or a recorded failure.",
        verdicts.every_candidate_has_verdict,
    ),
    Gate(
        Stage.CLASSIFICATIONS,
        "share_of_positives",
        False,
        "The share of performance pull requests is within the control limits of earlier months.",
        verdicts.share_of_positives,
    ),
    Gate(
        Stage.PROBLEM_STATEMENTS,
        "nothing_leaks",
        True,
        "No problem statement holds a line of its solution.",
        verdicts.nothing_leaks,
    ),
    Gate(
        Stage.ENVIRONMENTS,
        "every_lock_is_hashed",
        True,
        "Every requirement of every lock is pinned and hashed.",
        verdicts.every_lock_is_hashed,
    ),
    Gate(
        Stage.ENVIRONMENTS,
        "interpreter_is_declared",
        True,
        "Every interpreter is one the repository declares.",
        verdicts.interpreter_is_declared,
    ),
    Gate(
        Stage.IMAGES, "declared_commit", True, "Every image sits at its declared base commit.", verdicts.declared_commit
    ),
    Gate(
        Stage.IMAGES,
        "imports",
        True,
        "The package and its compiled extensions import in every image.",
        verdicts.imports,
    ),
    Gate(
        Stage.IMAGES,
        "benchmarks_discovered",
        True,
        "Benchmarks are discovered in every image.",
        verdicts.benchmarks_discovered,
    ),
    Gate(
        Stage.IMAGES,
        "one_benchmark_runs",
        True,
        "A benchmark runs in every image, and gives a time.",
        verdicts.one_benchmark_runs,
    ),
    Gate(Stage.IMAGES, "tests_collect", True, "The repository's tests collect in every image.", verdicts.tests_collect),
    Gate(Stage.IMAGES, "nothing_planted", True, "No image holds anything planted.", verdicts.nothing_planted),
    Gate(Stage.IMAGES, "no_credentials", True, "No image holds a token, a key or a password.", verdicts.no_credentials),
    Gate(Stage.IMAGES, "oracle_absent", True, "No image holds the author's patch.", verdicts.oracle_absent),
    Gate(
        Stage.MEASUREMENTS,
        "speedup_is_real",
        True,
        "Every measured speed-up follows from its stored samples.",
        verdicts.speedup_is_real,
    ),
    Gate(
        Stage.PUBLISHED_IMAGES,
        "every_digest_pulled",
        True,
        "Every published image was measured, and pulled back by digest.",
        verdicts.every_digest_pulled,
    ),
    Gate(
        Stage.PUBLISHED_DATASET,
        "reads_back_equal",
        True,
        "The month's rows read back from the released tag are the ones written.",
        verdicts.reads_back_equal,
    ),
    Gate(
        Stage.PUBLISHED_DATASET,
        "schema_and_ids_stable",
        True,
        "The schema is that of earlier releases; no task id appears twice.",
        verdicts.schema_and_ids_stable,
    ),
    Gate(
        Stage.PUBLISHED_DATASET,
        "released_tags_untouched",
        True,
        "Every released tag still points to the revision it was released with.",
        verdicts.released_tags_untouched,
    ),
)

BLOCKING: dict[Stage, tuple[str, ...]] = {
    stage: tuple(gate.check for gate in GATES if gate.stage is stage and gate.blocking) for stage in Stage
}


def asset_checks(gates: Sequence[Gate] = GATES) -> list[dg.AssetChecksDefinition]:
    """One partitioned asset check for each gate."""
    return [_asset_check(gate) for gate in gates]


def _offenders(verdict: GateVerdict) -> dict[str, dg.MetadataValue[Any]]:
    if not verdict.offenders:
        return {}
    return {"offending": dg.MetadataValue.table([dg.TableRecord({"offender": one}) for one in verdict.offenders])}


def _asset_check(gate: Gate) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=gate.stage.value,
        name=gate.check,
        blocking=gate.blocking,
        description=gate.description,
        partitions_def=MONTHS,
    )
    def check(
        context: dg.AssetCheckExecutionContext, postgres: PostgresResource, hub: HubResource
    ) -> dg.AssetCheckResult:
        try:
            month = month_of(context)
            with postgres.database().transaction() as connection:
                judged = gate.judge(verdicts.Evidence(connection, month.key, hub))
                # this list names the gates; what a verdict function calls itself does not matter
                verdict = judged.model_copy(
                    update={"stage": gate.stage, "check": gate.check, "blocking": gate.blocking}
                )
                record_verdict(connection, verdict, context.run.run_id)
        except FormulaCodeError as error:
            raise dg.Failure(description=str(error), allow_retries=False) from error
        return check_result(verdict)

    return check


def check_result(verdict: GateVerdict) -> dg.AssetCheckResult:
    """*verdict* as Dagster shows it: with its offenders and figures, an error where it blocks, else a warning."""
    return dg.AssetCheckResult(
        passed=verdict.passed,
        severity=dg.AssetCheckSeverity.ERROR if verdict.blocking else dg.AssetCheckSeverity.WARN,
        description=verdict.summary,
        metadata={**_offenders(verdict), **verdict.figures},
    )
