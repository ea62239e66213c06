"""The logs of runs for programs."""

import json
import logging
from pathlib import Path

import dagster as dg
import pytest

from assets.materialize import ItemConfig, stage_run
from assets.repositories import repositories
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.operating.runner.progress import listener
from formulacode_dagster.orchestration.logs import JsonLines, JsonLog
from formulacode_dagster.orchestration.runs import dagster_instance as instance_of_home
from resources.postgres import PostgresResource

MONTHS = dg.StaticPartitionsDefinition(["2026-02"])


@dg.asset(partitions_def=MONTHS)
def thing(context: dg.AssetExecutionContext, postgres: PostgresResource) -> None:
    with stage_run(context, postgres, repositories, ItemConfig()):
        listener().item_finished(Stage.IMAGES, "a/b#1", ItemState.FAILED, "build", 2.0)
        listener().warn(Stage.IMAGES, "no cache")
    raise ValueError("ünfit")


def run() -> str:
    with instance_of_home() as instance:
        return dg.materialize(
            [thing],
            partition_key="2026-02",
            instance=instance,
            raise_on_error=False,
            resources={"postgres": PostgresResource()},
            tags={"dagster/run_name": "x"},
        ).run_id


@pytest.fixture
def home(tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FC_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    # set by what makes the home, and no other test's
    monkeypatch.setenv("DAGSTER_HOME", "")
    return tmp_path


@pytest.mark.slow
def test_every_run_logs_an_object_a_line_with_run_month_and_item(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = home / "fc.jsonl"
    monkeypatch.setenv("FC_JSON_LOG", str(path))
    run_id = run()
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert {(line["run"], line["month"]) for line in lines} == {(run_id, "2026-02")}
    (item,) = [line for line in lines if "item" in line]
    assert (item["item"], item["step"], item["level"]) == ("a/b#1", "thing", "INFO")
    assert item["message"] == "a/b#1: failed (build) after 2.0 s"
    assert [line["message"] for line in lines if line["level"] == "WARNING"] == ["no cache"]
    (failure,) = [line for line in lines if line.get("event") == "STEP_FAILURE"]
    assert "ValueError: ünfit" in failure["error"]


def test_without_the_setting_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FC_JSON_LOG", raising=False)
    monkeypatch.chdir(tmp_path)
    JsonLog().handle(logging.makeLogRecord({"msg": "it"}))
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_written_costs_lines_and_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FC_JSON_LOG", str(tmp_path / "file" / "fc.jsonl"))
    (tmp_path / "file").write_text("")
    logger = logging.Logger("a run")
    logger.addHandler(JsonLog())
    logger.error("it")
    assert "NotADirectoryError" in capsys.readouterr().err


def test_a_record_of_others_is_an_object_too() -> None:
    record = logging.LogRecord("name", logging.ERROR, "path", 1, "%s is gone", ("it",), None)
    line = json.loads(JsonLines().format(record))
    assert (line["message"], line["level"]) == ("it is gone", "ERROR")
    assert "run" not in line
