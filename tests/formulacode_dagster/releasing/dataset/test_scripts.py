"""A month read and released by scripts, under the rules under which the pipeline releases it."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from assets.published_dataset import published_dataset
from formulacode_dagster.library import PR, Dataset, HuggingFacePublisher, Task, records
from formulacode_dagster.models.check import CheckVerdict
from formulacode_dagster.models.errors import ConfigurationError, GateClosedError, ItemFailure
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.models.problem import ProblemStatement
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import SkipReason
from formulacode_dagster.operating.store import artifacts
from formulacode_dagster.operating.store.checks import record_verdict
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from formulacode_dagster.releasing.dataset.gate import release_gate
from formulacode_dagster.releasing.dataset.index import INDEX_FILE, DatasetIndex
from formulacode_dagster.releasing.dataset.readiness import RELEASE_GATES
from sandbox.hub import app
from sandbox.server import serving
from tests.support.month import enter
from tests.support.sampling import sampled

MONTH = "2026-02"
FIRST, SECOND = "formulacode@2026-03", "formulacode@2026-03.1"


@pytest.mark.slow
@pytest.mark.usefixtures("month")
def test_a_script_needs_nothing_but_the_settings(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The calls as the documentation has them, from the database of the settings to their Hub and back."""
    monkeypatch.chdir(tmp_path)
    with serving(app(tmp_path / "hub")) as url:
        settings = {"FC_DATABASE_URL": database_url, "FC_HOME": str(tmp_path / "home"), "HF_DATASET": "acme/tasks"}
        for name, value in {**settings, "HF_ENDPOINT": url, "HF_TOKEN": "hf_Writes"}.items():
            monkeypatch.setenv(name, value)
        found = records(start_date="2026-02-01", end_date="2026-03-01")
        assert found == [PR(repository="Acme/Fast.py", issue_number=7).to_record()]
        assert HuggingFacePublisher().publish(found, version=FIRST).destination == "hub:acme/tasks"
        task = Dataset.load("acme/tasks", revision=FIRST)["Acme__Fast.py-7"]
        assert task.row == Task.from_record(found[0]).row
        assert task.image is None
        assert task.workloads["benchmark"].to_list() == ["bench.time_a", "bench.time_z"]
        assert task.procedures["suite"].to_list() == ["merge commit"]
        assert task.samples.height == sum(len(record.samples) for record in found)
        with pytest.raises(ItemFailure):
            task.export("harbor", tmp_path / "task")


def test_scripts_read_what_the_next_release_is_going_to_hold(month: Database, pull_request: PullRequest) -> None:
    (found,) = records(start_date="2026-02-14", end_date=date(2026, 2, 15), database=month)
    assert Task.from_record(found).id == "Acme__Fast.py-7"
    assert {test.name for test in found.tests} == {"t.py::a", "t.py::b", "t.py::c"}
    assert PR(repository="acme/fast.py", issue_number=7).to_record(database=month) == found
    for start, end in (("2026-01-01", "2026-02-14"), ("2026-02-15", "2026-04-01")):
        assert records(start_date=start, end_date=end, database=month) == []
    with pytest.raises(ConfigurationError, match=r"acme/fast\.py#8 is no task"):
        PR(repository="acme/fast.py", issue_number=8).to_record(database=month)
    with pytest.raises(ConfigurationError, match="'February' is not a date"):
        records(start_date="February", end_date="2026-03-01", database=month)


@pytest.mark.slow
def test_a_script_releases_a_month_under_the_rules_of_releases(
    month: Database, statement: ProblemStatement, pull_request: PullRequest, tmp_path: Path
) -> None:
    destination = FolderDestination(tmp_path)
    publisher = HuggingFacePublisher(destination, month)
    dates = {"start_date": "2026-02-01", "end_date": "2026-03-01"}
    whole = records(**dates, database=month)
    with pytest.raises(ConfigurationError, match=r"1 no longer there: Acme__Fast\.py-7"):
        publisher.publish([], version=FIRST)
    for wrong, why in (("v1", "not a tag of a release"), (SECOND, "is a revision"), (f"{FIRST}.3", "not the next")):
        if wrong == SECOND:
            first = publisher.publish(whole, version=FIRST)
        with pytest.raises(ConfigurationError, match=why):
            publisher.publish(whole, version=wrong)
    assert publisher.publish(whole, version=FIRST) == first
    with month.transaction() as connection:
        assert artifacts.RELEASES.read(connection, MONTH) == [first]
        gate = release_gate(connection, MONTH, [pull_request.item])
        artifacts.PROBLEM_STATEMENTS.save(connection, [statement.model_copy(update={"final_md": "Slow."})])
    other = records(**dates, database=month)
    with pytest.raises(ItemFailure, match="a released tag is never changed"):
        publisher.publish(other, version=FIRST)
    with pytest.raises(ConfigurationError, match="corrects nothing"):
        publisher.publish(other, version=FIRST, correction="it was told wrongly")
    second = publisher.publish(other, version=SECOND, correction="it was told wrongly")
    assert (second.tag, second.difference) == (SECOND, "1 changed: Acme__Fast.py-7 (final_md)")
    for tag in (FIRST, SECOND, ""):
        (indexed,) = DatasetIndex.parse(destination.content(INDEX_FILE, tag), tag).months
        assert indexed.gate == gate
    with pytest.raises(ConfigurationError, match="it would contain the rows of"):
        publisher.publish(other, version=f"{FIRST}.2", correction="once more")


@pytest.mark.parametrize("gate", sampled(RELEASE_GATES, most=2, of="gates"), ids="/".join)
def test_no_script_releases_a_month_with_a_gate_that_is_shut(
    month: Database, gate: tuple[Stage, str], tmp_path: Path
) -> None:
    stage, check = gate
    with month.transaction() as connection:
        verdict = CheckVerdict(stage=stage, month=MONTH, check=check, passed=False, blocking=True, summary="bad")
        record_verdict(connection, verdict, "test")
    whole = records(start_date="2026-02-01", end_date="2026-03-01", database=month)
    with pytest.raises(GateClosedError, match=f"{stage}/{check} is shut"):
        HuggingFacePublisher(FolderDestination(tmp_path), month).publish(whole, version=FIRST)
    assert FolderDestination(tmp_path).tags() == {}


def test_the_gates_of_scripts_are_those_of_the_pipeline(month: Database, tmp_path: Path) -> None:
    assert published_dataset.gates == RELEASE_GATES
    enter(month, Stage.ENVIRONMENTS, "a/b#1", ItemState.SKIPPED, reason=SkipReason.NOT_ASKED)
    whole = records(start_date="2026-02-01", end_date="2026-03-01", database=month)
    with pytest.raises(GateClosedError, match="1 items of environments were left out"):
        HuggingFacePublisher(FolderDestination(tmp_path), month).publish(whole, version=FIRST)
