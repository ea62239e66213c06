import dagster as dg
import pytest
from sqlalchemy import event

from assets.checks import JudgedMonth, failures_within_budget, month_check, result_of
from assets.classifications import share_of_positives
from assets.images import verifications_hold
from assets.materialize import ItemConfig, report, stage_run
from assets.partitions import MONTHS
from assets.stage_asset import stage_asset
from formulacode_dagster.building.verification.verifications import VERIFICATION_NAMES
from formulacode_dagster.models.check import CheckFinding, Doubt
from formulacode_dagster.models.classification import Classification
from formulacode_dagster.models.image import Verification
from formulacode_dagster.models.items import ItemKind, ItemState, LedgerEntry, Stage
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.runner.runner import in_thread, run_items
from formulacode_dagster.operating.runner.work import Outcome, WorkItem
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.acceptances import acceptances
from formulacode_dagster.operating.store.artifacts import CLASSIFICATIONS, IMAGES, MERGED_PULL_REQUESTS
from formulacode_dagster.operating.store.checks import verdicts
from formulacode_dagster.operating.store.database import Database
from resources.defaults import default_resources
from resources.postgres import PostgresResource
from tests.records import make_classification, make_image, make_merged


def judged(month: str, positives: int, candidates: int) -> list[Classification]:
    return [
        make_classification(month=month, number=number, is_performance=number <= positives)
        for number in range(1, candidates + 1)
    ]


@pytest.mark.slow
def test_the_share_of_positives_is_held_against_a_year_in_one_statement(database: Database) -> None:
    with database.transaction() as connection:
        for month, positives in (("2025-01", 300), ("2025-02", 20), ("2025-12", 20), ("2026-02", 290)):
            CLASSIFICATIONS.save(connection, judged(month, positives, 300))
    sent: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda *told: sent.append(told[2]))
    verdict = share_of_positives.judge(JudgedMonth(database, Stage.CLASSIFICATIONS, "2026-02", "run"))
    first = share_of_positives.judge(JudgedMonth(database, Stage.CLASSIFICATIONS, "2015-01", "run"))
    assert len(sent) == 2
    assert not verdict.passed
    # January 2025 is more than twelve months back
    assert verdict.figures["positives"] == 290
    assert verdict.figures["expected"] < 0.1
    assert first.figures["candidates"] == 0


@pytest.mark.slow
def test_a_row_of_an_earlier_version_closes_the_gate_with_its_lack(
    database: Database, database_url: str, dagster_instance: dg.DagsterInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    earlier = tuple(Verification(name=name, ok=True) for name in VERIFICATION_NAMES[:-1])
    image = make_image(month="2026-02", number=1, benchmarks=("bench.time_x",), verifications=earlier)
    key = {"month": "2026-02", "repository_id": image.repository_id, "number": 1}
    with database.transaction() as connection:
        MERGED_PULL_REQUESTS.save(connection, [make_merged(**key, repository="a/b")])
        IMAGES.save(connection, [image])
        done = LedgerEntry(stage=Stage.IMAGES, month="2026-02", item="a/b#1", state=ItemState.DONE)
        ledger.record(connection, [done])

    @dg.asset(partitions_def=MONTHS)
    def images() -> None: ...

    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    result = dg.materialize(
        [images, verifications_hold.definition(Stage.IMAGES)],
        partition_key="2026-02",
        instance=dagster_instance,
        resources={"postgres": default_resources()["postgres"]},
        raise_on_error=False,
    )
    (evaluation,) = result.get_asset_check_evaluations()
    assert (evaluation.passed, evaluation.severity) == (False, dg.AssetCheckSeverity.ERROR)
    table = {record.data["name"]: record.data for record in evaluation.metadata["tally"].records}
    assert list(table) == list(VERIFICATION_NAMES)
    missing = VERIFICATION_NAMES[-1]
    assert table[missing] == {"name": missing, "held": 0, "failed": 0, "not made": 1, "unknown": 0}
    with database.transaction() as connection:
        (kept,) = verdicts(connection, "2026-02")
    assert (kept.stage, kept.check, kept.blocking) == (Stage.IMAGES, "verifications_hold", True)
    assert kept.offenders == (f"{image.spec.task_id}: {missing} not made",)


@pytest.mark.parametrize("judgement", [CheckFinding(passed=False, summary="noise"), Doubt(summary="one alone")])
def test_a_check_that_blocks_only_warns_of_a_doubt(database: Database, judgement: CheckFinding) -> None:
    check = month_check(blocking=True)(lambda _: judgement)
    verdict = check.verdict(JudgedMonth(database, Stage.MEASUREMENTS, "2026-02", "run"))
    blocks = not isinstance(judgement, Doubt)
    assert (verdict.passed, verdict.blocking) == (False, blocks)
    severity = dg.AssetCheckSeverity.ERROR if blocks else dg.AssetCheckSeverity.WARN
    assert result_of(verdict, blocking=verdict.blocking).severity is severity
    with database.transaction() as connection:
        assert verdicts(connection, "2026-02") == [verdict]


@pytest.mark.slow
@pytest.mark.parametrize("accepted", [{}, {"accepted_by": "Ada", "accepted_because": "their server is gone"}])
def test_a_stage_over_budget_closes_the_gate_unless_accepted(
    accepted: dict[str, str], database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    failed = LedgerEntry(
        stage=Stage.IMAGES, month="2026-02", item="a/b#1", state=ItemState.FAILED, reason="build", inputs="same"
    )
    with database.transaction() as connection:
        ledger.record(connection, [failed])

    def build(
        context: dg.AssetExecutionContext, config: ItemConfig, postgres: PostgresResource
    ) -> dg.MaterializeResult:
        with stage_run(context, postgres, images, config) as run:
            summary = run_loop(
                run_items(
                    run, ItemKind.PULL_REQUEST, [WorkItem("a/b#1", "same", None)], in_thread(lambda _: Outcome()), None
                )
            )
        return report(context, summary)

    declare = stage_asset(
        Stage.IMAGES, partitions_def=MONTHS, group_name="build", kinds={"docker"}, description="images"
    )
    images = declare(build)
    result = dg.materialize(
        [images.definition, failures_within_budget.definition(Stage.IMAGES)],
        partition_key="2026-02",
        resources={"postgres": default_resources()["postgres"]},
        run_config={"ops": {"images": {"config": accepted}}},
        raise_on_error=False,
    )
    (evaluation,) = result.get_asset_check_evaluations()
    assert (result.success, evaluation.passed) == (bool(accepted), bool(accepted))
    assert evaluation.description == "1 of 1 pull requests failed, 40% may" + (
        "; accepted by Ada: their server is gone" if accepted else ""
    )
    with database.transaction() as connection:
        assert len(acceptances(connection, "2026-02")) == bool(accepted)
