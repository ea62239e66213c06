"""The asset `agent_results`: stored runs of a release as a table, summed again only when runs are added."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
from sqlalchemy import text

from assets.agent_results import agent_results
from assets.checks import JudgedMonth
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.operating.store.artifacts import AGENT_RESULTS, AGENT_RUNS
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.ledger import entries_of
from formulacode_dagster.releasing.dataset.destination import ReleasedMonth
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from resources.defaults import default_resources
from resources.hub import HubResource
from tests.support.agent_runs import MONTH, TAG, agent_run, released_row, released_task
from tests.support.release import tables_of


@pytest.mark.slow
def test_stored_runs_become_a_table_that_its_checks_accept(
    tmp_path: Path,
    database: Database,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    dagster_instance: dg.DagsterInstance,
) -> None:
    monkeypatch.setenv("FC_HOME", str(tmp_path))
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    dataset = FolderDestination(tmp_path / "dataset")
    dataset.release(Month.parse(MONTH), tables_of([released_row()]))
    task = released_task()
    own = {"statement_sha256": task.statement_sha256}
    resources = {name: known for name, known in default_resources().items() if name in ("postgres", "hub")}

    def materialize() -> dict[str, Any]:
        done = dg.materialize(
            [agent_results.definition, *(check.definition(Stage.AGENT_RESULTS) for check in agent_results.checks)],
            partition_key=MONTH,
            instance=dagster_instance,
            resources=resources,
        )
        (event,) = done.asset_materializations_for_node("agent_results")
        return {name: value.value for name, value in event.metadata.items()}

    def verdicts() -> dict[str, bool]:
        month, hub = JudgedMonth(database, Stage.AGENT_RESULTS, MONTH, "run"), HubResource()
        own, *others = agent_results.checks
        return {
            own.name: own.verdict(month).passed,
            **{check.name: check.verdict(month, hub=hub).passed for check in others},
        }

    reads: list[str] = []
    read = FolderDestination.read

    def counted(self: FolderDestination, month: Month) -> ReleasedMonth | None:
        reads.append(month.key)
        return read(self, month)

    monkeypatch.setattr(FolderDestination, "read", counted)
    empty = materialize()
    assert reads == [MONTH], "the asset and its checks share one download"
    assert (empty["dagster/row_count"], empty["table"], empty["release"]) == (0, "no run was taken", TAG)
    assert all(verdicts().values())
    with database.transaction() as connection:
        AGENT_RUNS.save(
            connection,
            [agent_run(task.id, 1.0, "oracle", **own), agent_run(task.id, 0.5, **own), agent_run(task.id, None, **own)],
        )
    assert not verdicts()["no_infrastructure_failure_counts"]
    told = materialize()
    assert (told["dagster/row_count"], told["runs"], told["infrastructure_failures"]) == (2, 2, 1)
    assert told["scores"].startswith("![scores](data:image/png;base64,")
    assert "| codex | 0.500 | 0.500 to 0.500 | 1 of 1 | 1 | 1 |" in told["table"]
    assert all(verdicts().values())
    with database.transaction() as connection:
        assert {row.contestant for row in AGENT_RESULTS.read(connection, MONTH)} == {"codex", "oracle"}
        assert {run.contaminated for run in AGENT_RUNS.read(connection, MONTH)} == {"no", "unknown"}
    assert materialize()["worked_in_this_run"] == 0
    page = Path("docs/results.md").read_text()
    (documented,) = [block for block in re.findall(r"```sql\n(.*?)```", page, re.DOTALL) if "strata" in block]
    with database.transaction() as connection:
        found = sorted(map(tuple, connection.execute(text(documented))))
    assert found == [("codex", "", "10× and more", "0.5"), ("oracle", "", "10× and more", "1.0")]
    # another table of models, other marks
    (tmp_path / "models.csv").write_text("model,cutoff\nm,2026-12-31\n")
    monkeypatch.setenv("FC_MODEL_CUTOFFS", str(tmp_path / "models.csv"))
    with database.transaction() as connection:
        AGENT_RUNS.save(connection, [agent_run(task.id, 0.5, model="m", **own)])
    assert materialize()["worked_in_this_run"] == 1
    with database.transaction() as connection:
        marks = {run.model: run.contaminated for run in AGENT_RUNS.read(connection, MONTH)}
    assert marks["m"] == "yes"
    # a revision without the task
    revision = dataset.release(
        Month.parse(MONTH), tables_of([released_row(task_id="acme__other-5")]), correction="it was flaky"
    )
    assert not verdicts()["runs_belong_to_the_release"]
    told = materialize()
    assert (told["dagster/row_count"], told["runs"], told["release"]) == (0, 0, revision.tag)
    assert all(verdicts().values())
    with database.transaction() as connection:
        (entry,) = entries_of(connection, MONTH, Stage.AGENT_RESULTS)
        assert len(AGENT_RUNS.read(connection, MONTH)) == 4
    assert entry.detail == (
        "0 runs of 0 agents on 1 tasks of formulacode@2026-03.1; "
        "left out are 4 whose task it lacks, or has with another image or statement"
    )
