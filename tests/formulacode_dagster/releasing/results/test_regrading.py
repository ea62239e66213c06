"""Stored changes graded again after the grader was changed: both gradings are kept, and compared."""

from __future__ import annotations

import pytest

from formulacode_dagster.models.agent_run import RunState
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.store.artifacts import AGENT_RUNS
from formulacode_dagster.operating.store.blobs import put_blob
from formulacode_dagster.releasing.exports import evaluate
from formulacode_dagster.releasing.exports.formats import is_exported_task
from formulacode_dagster.releasing.results.checks import regrades_agree
from formulacode_dagster.releasing.results.regrading import outdated, regrade
from tests.support.agent_runs import DIFF, MONTH, TAG, agent_run, grader_report, released_task


@pytest.fixture
def task():
    return released_task()


@pytest.fixture
def run(database, task):
    """A stored run that an older grader judged."""
    with database.transaction() as connection:
        diff = put_blob(connection, "agent_diff", DIFF)
        known = {"diff_sha256": diff, "statement_sha256": task.statement_sha256, "dollars": 2.0}
        made = agent_run(task.id, 0.9, model="m", **known)
        AGENT_RUNS.save(connection, [made])
    return made


def test_both_gradings_are_stored_and_compared(database, task, run, tmp_path):
    graded = []

    def grade(folder, diff):
        graded.append((is_exported_task(folder), diff))
        return grader_report(task, 0.5)

    (done,) = regrade(database, outdated([run], {task.id: task}), {task.id: task}, tmp_path, grade, lambda _: None)
    assert graded == [(True, DIFF)]
    again = done.again
    assert (again.regrade_of, again.reward, again.contestant) == (run.run_id, 0.5, run.contestant)
    assert (again.grader_sha256, again.dollars) == (task.identity.grader_sha256, None)
    with database.transaction() as connection:
        stored = AGENT_RUNS.read(connection, MONTH)
    assert {each.run_id for each in stored} == {run.run_id, again.run_id}
    assert regrades_agree(stored).offenders == (f"{run.contestant}, trial: 0.90, regraded 0.50",)
    assert outdated(stored, {task.id: task}) == []


def test_work_that_cannot_be_graded_now_is_no_zero(database, task, run, tmp_path):
    report = grader_report(task, 0.0, reason="not_gradable", detail="base does not build")
    (done,) = regrade(database, [run], {task.id: task}, tmp_path, lambda *_: report, lambda _: None)
    assert (done.again.state, done.again.reward) == (RunState.INFRASTRUCTURE, None)

    def break_off(folder, diff):
        raise ItemFailure(FailureKind.INCOMPLETE, "the grader broke off")

    (lost,) = regrade(database, [run], {task.id: task}, tmp_path, break_off, lambda _: None)
    assert (lost.again, lost.why) == (None, "the grader broke off")


def test_only_runs_of_the_same_task_by_another_grader_are_outdated(task, run):
    tasks, current = {task.id: task}, {"grader_sha256": task.identity.grader_sha256}
    others = [
        run.model_copy(update=changes)
        for changes in (
            {"state": RunState.INFRASTRUCTURE},
            {"regrade_of": "x"},
            {"diff_sha256": ""},
            {"image_digest": "sha256:2"},
            {"task_id": "gone"},
            current,
        )
    ]
    assert outdated([run, *others], tasks) == [run]
    assert outdated([run, *others], tasks, every=True) == [run, run.model_copy(update=current)]


@pytest.mark.slow
def test_the_command_says_what_changed(call_fc_data, database_url, dataset, run, task, monkeypatch):
    monkeypatch.setattr(evaluate, "grade_diff", lambda *_: grader_report(task, 0.0))
    options = ("--release", TAG, "--from", str(dataset))
    done = call_fc_data("results", "regrade", *options, FC_DATABASE_URL=database_url)
    assert done.returncode == 0, done.stderr
    assert "codex (m), acme__python-5: 0.90 (faster), now 0.00 (unchanged)" in done.stdout
    assert "1 runs graded again, 0 not" in done.stdout
    again = call_fc_data("results", "regrade", *options, "--agent", "other", FC_DATABASE_URL=database_url)
    assert "0 runs graded again" in again.stdout
