"""Runs of four programs read into the database; runs that are refused, and those that never count."""

from __future__ import annotations

import hashlib
import json
import os
from datetime import UTC, datetime

import pytest

from formulacode_dagster.models.agent_run import Contamination, RunSource, RunState
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.store.artifacts import AGENT_RUNS, TRAJECTORIES
from formulacode_dagster.operating.store.blobs import get_blob
from formulacode_dagster.releasing.exports.evaluate import KeptRun, recorded_diff
from formulacode_dagster.releasing.exports.formats import HarnessFormat
from formulacode_dagster.releasing.exports.write import export_task
from formulacode_dagster.releasing.results.recorded import MOST_BYTES, content_hash
from formulacode_dagster.releasing.results.redaction import Redaction
from formulacode_dagster.releasing.results.released import ReleasedTasks
from formulacode_dagster.releasing.results.taking import NO_REPORT, take
from formulacode_dagster.releasing.results.task_facts import facts_of
from tests.support.agent_runs import (
    DIFF,
    MONTH,
    TAG,
    TRAJECTORY,
    grader_report,
    released_task,
    write_json,
    write_trial,
)
from tests.support.harnesses import call

SECRET = {"MY_PASSWORD": "hunter2hunter2"}
FAILED = {
    "exception_info": {"exception_type": "EnvironmentStartTimeoutError", "exception_message": "no hunter2hunter2"},
    "verifier_result": None,
    "reward_valid": False,
}


@pytest.fixture
def task():
    return released_task()


@pytest.fixture
def took(database, task):
    """Take the runs in a folder."""
    tasks = ReleasedTasks("dataset", [task])
    return lambda folder: take(database, folder, tasks, Redaction(SECRET), lambda _: None)


def test_trials_of_harbor_are_stored_once_with_all_that_they_say(took, task, tmp_path, database):
    job = tmp_path / "jobs" / "codex"
    told = {
        "agent_info": {"name": "codex", "version": "1.2", "model_info": {"name": "gpt", "provider": "openai"}},
        "agent_result": {"n_input_tokens": 10, "n_cache_tokens": 4, "n_output_tokens": 3, "cost_usd": 0.25},
    }
    folder = write_trial(job, task, "a__1", grader_report(task), **told)
    write_json(folder / "agent" / "trajectory.json", TRAJECTORY)
    write_trial(job, task, "a__2", grader_report(task, 0.0), **told)
    done = took(tmp_path / "jobs")
    assert (len(done.taken), done.known, done.refused) == (2, 0, ())
    first, second = done.taken
    assert (first.month, first.task_id, first.release, first.source) == (MONTH, task.id, TAG, RunSource.HARBOR)
    assert (first.contestant, first.state, first.reason) == ("codex 1.2 (openai/gpt)", RunState.GRADED, "faster")
    assert (first.reward, first.speedup, first.oracle_speedup, first.tests) == (0.5, 4.0, 16.0, 2)
    assert (first.dollars, first.tokens_in, first.tokens_cached, first.tokens_out) == (0.25, 10, 4, 3)
    assert (first.turns, second.turns) == (2, None)
    assert (first.task, first.contaminated) == (facts_of(task.row), Contamination.UNKNOWN)
    assert first.agent_seconds == pytest.approx(0.731, abs=0.01)
    assert first.seconds == pytest.approx(18.42, abs=0.01)
    assert (second.reward, second.reason) == (0.0, "unchanged")
    assert [(each.speedup, each.oracle_speedup) for each in first.benchmarks] == [(4.0, 16.0)]
    with database.transaction() as connection:
        assert {row.run_id for row in AGENT_RUNS.read(connection, MONTH)} == {first.run_id, second.run_id}
        assert get_blob(connection, first.diff_sha256) == DIFF
        (kept,) = TRAJECTORIES.read(connection, MONTH)
        text = get_blob(connection, kept.sha256).decode()
    assert (kept.run_id, kept.format, kept.steps, kept.redacted) == (first.run_id, "ATIF-v1.6", 3, 3)
    assert [step["source"] for step in json.loads(text)["steps"]] == ["user", "agent", "agent"]
    for secret in ("sk-proj", "hf_abc", "hunter2"):
        assert secret not in text
    again = took(job)
    assert (again.taken, again.known) == ((), 2)


def test_a_trajectory_nested_too_deeply_costs_no_run(took, task, tmp_path):
    folder = write_trial(tmp_path / "job", task, "a__1", grader_report(task))
    (folder / "agent").mkdir()
    (folder / "agent" / "trajectory.json").write_text("[" * 100_000)
    write_trial(tmp_path / "job", task, "a__2", grader_report(task))
    assert [(run.name, run.turns) for run in took(tmp_path / "job").taken] == [("a__1", 0), ("a__2", None)]


@pytest.mark.parametrize("name", ["artifacts/agent.diff", "agent/trajectory.json"])
def test_a_file_of_the_agent_too_large_to_be_stored_costs_no_run(took, task, tmp_path, name):
    report = grader_report(task, 0.0, reason="no_diff")
    folder = write_trial(tmp_path / "job", task, "a__1", report)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).touch()
    os.truncate(folder / name, MOST_BYTES + 1)
    write_trial(tmp_path / "job", task, "a__2", report)
    done = took(tmp_path / "job")
    assert done.refused == ()
    assert [(run.state, run.reward, run.reason) for run in done.taken] == [(RunState.GRADED, 0.0, "no_diff")] * 2
    kept = [bool(run.diff_sha256) for run in done.taken]
    assert kept == [name != "artifacts/agent.diff", True]
    assert took(tmp_path / "job").known == 2


def test_the_hash_of_a_run_is_over_the_hashes_of_its_files(tmp_path):
    (tmp_path / "a").write_bytes(b"a")
    hashes = [hashlib.sha256(content).digest() for content in (b"a", b"")]
    assert content_hash([tmp_path / "a", tmp_path / "missing"]) == hashlib.sha256(b"".join(hashes)).hexdigest()


def test_failures_of_infrastructure_are_a_state_and_have_no_reward(took, task, tmp_path):
    job = tmp_path / "job"
    write_trial(job, task, "a__1", None, **FAILED)
    # the model's endpoint failed, and the grader then judged what was there
    limited = {"exception_type": "ApiRateLimitError", "exception_message": "429"}
    write_trial(job, task, "a__2", grader_report(task, 0.0), exception_info=limited, reward_valid=False)
    write_trial(job, task, "a__3", grader_report(task, 0.0, reason="not_gradable", detail="base does not build"))
    write_trial(job, task, "a__4", None)
    done = took(job)
    assert [(run.state, run.reward) for run in done.taken] == [(RunState.INFRASTRUCTURE, None)] * 4
    assert [run.error for run in done.taken] == [
        "EnvironmentStartTimeoutError", "ApiRateLimitError", "not_gradable", NO_REPORT,
    ]  # fmt: skip
    assert done.taken[0].detail == "no ***"


def test_an_agent_that_ran_out_of_time_is_graded_by_what_it_left(took, task, tmp_path):
    late = {"exception_type": "AgentTimeoutError", "exception_message": "3 hours"}
    write_trial(tmp_path / "job", task, "a__1", grader_report(task), exception_info=late)
    (run,) = took(tmp_path / "job").taken
    assert (run.state, run.reward, run.error) == (RunState.GRADED, 0.5, "AgentTimeoutError")


def test_work_that_breaks_something_has_no_speedup_however_fast_it_is(took, task, tmp_path):
    write_trial(tmp_path / "job", task, "a__1", grader_report(task, 0.0, reason="returns_other"))
    (run,) = took(tmp_path / "job").taken
    assert [(each.speedup, each.oracle_speedup) for each in run.benchmarks] == [(1.0, 16.0)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"task_sha256": "0" * 64}, "the grader's input"),
        ({"grader_sha256": "0" * 64}, "the grader of"),
        ({"grader_sha256": ""}, "none is recorded"),
        ({"task": "acme__other-1"}, "the task of"),
    ],
)
def test_runs_of_another_release_or_grader_are_refused_by_name(took, task, tmp_path, changes, said):
    write_trial(tmp_path / "job", task, "trial-7", grader_report(task, **changes))
    done = took(tmp_path / "job")
    assert done.taken == ()
    (why,) = done.refused
    assert "trial-7" in why
    assert said in why


def test_a_task_that_was_edited_or_is_of_no_release_is_refused(took, task, tmp_path):
    folder = write_trial(tmp_path / "job", task, "trial-7", None, **FAILED)
    lock = json.loads((folder / "lock.json").read_text())
    lock["task"]["digest"] = "sha256:" + "2" * 64
    write_json(folder / "lock.json", lock)
    write_trial(tmp_path / "job", task, "trial-8", None, **FAILED, task_name="formulacode/acme__gone-9")
    (edited, gone) = took(tmp_path / "job").refused
    assert "the exported folder of acme__python-5 is not that of formulacode@2026-03" in edited
    assert "acme__gone-9 is no task of dataset" in gone


def test_another_image_of_the_same_task_is_refused(database, task, tmp_path):
    write_trial(tmp_path / "job", task, "trial-7", grader_report(task))
    other = released_task(image_digest="sha256:" + "3" * 64)
    done = take(database, tmp_path / "job", ReleasedTasks("dataset", [other]), Redaction({}), lambda _: None)
    assert (done.taken, len(done.refused)) == ((), 1)


def test_runs_that_evaluate_kept_are_read(took, task, tmp_path):
    times = {"started_at": datetime(2026, 4, 1, tzinfo=UTC), "finished_at": datetime(2026, 4, 1, 0, 1, tzinfo=UTC)}
    kept = KeptRun(task=task.id, agent="oracle", **times)
    for name, report in (("one", grader_report(task, 1.0)), ("two", None)):
        lost = {} if report else {"error": "OutsideSystemError", "message": "Docker does not answer"}
        write_json(tmp_path / name / "run.json", kept.model_copy(update=lost).model_dump(mode="json"))
        if report:
            write_json(tmp_path / name / "report.json", report)
            (tmp_path / name / "agent.diff").write_bytes(DIFF)
    first, second = took(tmp_path).taken
    assert (first.source, first.agent, first.reward, first.seconds) == (RunSource.EVALUATE, "oracle", 1.0, 60.0)
    assert (second.state, second.error) == (RunState.INFRASTRUCTURE, "OutsideSystemError")


def terminal_run(folder, task, *, fc_eval, report, agents=("a:b",), **changes):
    """The output of fc-eval or terminal-bench for one trial."""
    write_json(folder / "run_metadata.json", {"agent_name": "terminus", "model_name": "openai/gpt"})
    trial = folder / HarnessFormat.FC_EVAL.folder_name(task.id) / "t.1-of-1"
    metrics = {"parser_extra_metrics": {"agent_metrics_by_agent": {key: {} for key in agents}}} if fc_eval else {}
    write_json(trial / "results.json", {"trial_name": "t.1-of-1", "task_id": trial.parent.name, **metrics, **changes})
    if report:
        write_json(trial / "sessions" / "verifier" / "report.json", report)


@pytest.mark.parametrize("source", [RunSource.FC_EVAL, RunSource.TERMINAL_BENCH])
def test_the_other_harnesses_are_read_by_their_graders_reports(took, tmp_path, source, database, task):
    terminal_run(tmp_path / "x", task, fc_eval=source is RunSource.FC_EVAL, report=grader_report(task))
    (run,) = took(tmp_path / "x").taken
    assert (run.source, run.task_id, run.reward, run.model) == (source, task.id, 0.5, "openai/gpt")
    broken = {"failure_mode": "agent_installation_failed"}
    terminal_run(tmp_path / "y", task, fc_eval=source is RunSource.FC_EVAL, report=None, **broken)
    (run,) = took(tmp_path / "y").taken
    assert (run.state, run.error) == (RunState.INFRASTRUCTURE, "agent_installation_failed")


def test_agents_that_shared_a_container_are_refused(took, tmp_path, task):
    terminal_run(tmp_path / "x", task, fc_eval=True, report=grader_report(task), agents=("nop:nop", "oracle:oracle"))
    (why,) = took(tmp_path / "x").refused
    assert "several agents shared the container of t.1-of-1" in why


def test_broken_files_are_refused_and_unknown_folders_are_an_error(took, task, tmp_path):
    folder = write_trial(tmp_path / "job", task, "a__1", grader_report(task))
    (folder / "verifier" / "report.json").write_text("{}")
    (why,) = took(tmp_path / "job").refused
    assert "report.json cannot be read" in why
    with pytest.raises(ConfigurationError, match="has no results of agents"):
        took(tmp_path / "nothing")


@pytest.mark.parametrize(
    "name", ["artifacts/agent.diff", "artifacts", "agent/trajectory.json", "verifier/report.json", "lock.json"]
)
def test_a_trial_with_a_link_out_of_it_is_refused_and_others_are_taken(took, task, tmp_path, name):
    job = tmp_path / "job"
    move_out(write_trial(job, task, "a__1", grader_report(task)) / name, tmp_path / "credentials")
    inside = write_trial(job, task, "a__2", grader_report(task)) / "artifacts" / "agent.diff"
    inside.rename(inside.with_name("changes.diff"))
    inside.symlink_to("changes.diff")
    done = took(job)
    (why,) = done.refused
    assert "it leads out of the run" in why
    assert [run.name for run in done.taken] == ["a__2"]


def test_runs_of_other_programs_with_a_link_out_of_them_are_refused(took, task, tmp_path):
    moment = datetime(2026, 4, 1, tzinfo=UTC)
    kept = KeptRun(task=task.id, agent="oracle", started_at=moment, finished_at=moment)
    write_json(tmp_path / "one" / "run.json", kept.model_dump(mode="json"))
    move_out(tmp_path / "one" / "agent.diff", tmp_path / "credentials")
    terminal_run(tmp_path / "x", task, fc_eval=False, report=grader_report(task))
    move_out(next((tmp_path / "x").glob("*/*/sessions")), tmp_path / "sessions")
    for folder in ("one", "x"):
        (why,) = took(tmp_path / folder).refused
        assert "it leads out of the run" in why
    with pytest.raises(ConfigurationError, match=r"one has no agent\.diff"):
        recorded_diff(tmp_path / "one")


def move_out(path, place):
    """Move *path* to *place*, or what an agent would like to read, and leave a link."""
    path.parent.mkdir(exist_ok=True)
    if path.exists():
        path.rename(place)
    else:
        place.write_text("aws_secret_access_key")
    path.symlink_to(place)


def test_a_regrade_is_known_as_one(took, task, tmp_path):
    source = {"path": "/home/someone/jobs/first/a__1", "trial_id": None}
    recorded = {"agent": {"kwargs": {"token": "hunter2hunter2", "n": 3}}, "source_trial": source}
    write_trial(tmp_path / "job", task, "b__1", grader_report(task), config=recorded)
    (run,) = took(tmp_path / "job").taken
    assert run.regrade_of == "a__1"
    assert run.settings == {"token": "***", "n": "3"}


PACKAGED = """
import sys
from pathlib import Path
from harbor.publisher.packager import Packager
print(Packager.compute_content_hash(Path(sys.argv[1]))[0])
"""


@pytest.mark.network
@pytest.mark.slow
def test_the_digest_of_an_export_is_the_one_harbor_records(task, tmp_path):
    folder = export_task(task.row, HarnessFormat.HARBOR, tmp_path / task.id)
    told = call("harbor", "python", "-c", PACKAGED, str(folder), cwd=tmp_path)
    assert told.strip() == task.identity.export_digest


def test_the_command_takes_runs_and_names_refused_ones(call_fc_data, database_url, task, tmp_path, dataset):
    write_trial(tmp_path / "job", task, "a__1", grader_report(task))
    write_trial(tmp_path / "job", task, "a__2", grader_report(task, task_sha256=""))
    done = call_fc_data("results", "take", "job", "--from", str(dataset), FC_DATABASE_URL=database_url)
    assert done.returncode == 0, done.stderr
    assert "1 runs taken, 0 failures of infrastructure, 0 known before, 1 refused" in done.stdout
    assert "a__2" in done.stderr
