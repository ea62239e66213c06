"""An agent on a whole release: budgets, continuing, failures; by a stand-in for Harbor, and by our own hands."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import pytest

from formulacode_dagster.models.agent_run import RunState
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.month import Month
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.store.artifacts import AGENT_RUNS
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from formulacode_dagster.releasing.results.agent_runners import HarborRunner
from formulacode_dagster.releasing.results.release_runs import (
    FAILURES_IN_A_ROW,
    RUNS,
    RunBudget,
    RunsDone,
)
from tests.support import fake_harbor
from tests.support.agent_runs import MONTH, TAG, agent_run, release_runs, released_row, released_task
from tests.support.command_line import FC_DATA
from tests.support.release import tables_of
from tests.support.waiting import until

pytestmark = pytest.mark.slow
KINDS = ("python", "c")


@pytest.fixture
def harbor(tmp_path, monkeypatch):
    """A program that behaves as `harbor run` does; its folder of state."""
    program = tmp_path / "bin" / "harbor"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -IS {fake_harbor.__file__} "$@"\n')
    program.chmod(0o755)
    monkeypatch.setenv("FAKE_HARBOR", str(program.parent))
    return program


@pytest.fixture
def runs(database, tmp_path, harbor):
    """`runs(agent, **options)`: the runs of an agent of Harbor on a release with two tasks."""
    tasks = [released_task(kind) for kind in KINDS]

    def make(agent, *options, model="", **more):
        runner = HarborRunner(agent, model, options, str(harbor))
        return release_runs(tasks, runner, tmp_path / agent, database, **more)

    return make


def stored(database):
    with database.transaction() as connection:
        return AGENT_RUNS.read(connection, MONTH)


@pytest.mark.parametrize(
    ("agent", "reward", "reason"),
    [("oracle", 1.0, "faster"), ("nop", 0.0, "unchanged"), ("half", 0.5, "faster"), ("cheat", 0.0, "returns_other")],
)
def test_scripted_agents_get_their_rewards_on_every_task(runs, database, agent, reward, reason):
    done = run_loop(runs(agent, attempts=2, concurrency=2).run())
    assert (done.graded, done.left, done.lost, done.stopped) == (4, (), (), "")
    assert sorted((run.task_id, run.agent, run.reward, run.reason) for run in stored(database)) == [
        (f"acme__{kind}-5", agent, reward, reason) for kind in ("c", "c", "python", "python")
    ]
    again = runs(agent, attempts=2)
    assert run_loop(again.run()) == RunsDone((), (), (), "")
    assert [task.id for task in runs(agent, attempts=3).left()] == ["acme__python-5", "acme__c-5"]


def test_harbor_is_called_for_one_run_of_one_task(runs, harbor, tmp_path):
    run_loop(runs("codex", "--allow-agent-host", "api.test", model="openai/gpt").run())
    first, _ = map(json.loads, (harbor.parent / "commands").read_text().splitlines())
    folder = tmp_path / "codex"
    assert first == [
        *("run", "--path", str(folder / "tasks" / "acme__python-5"), "--agent", "codex", "--model", "openai/gpt"),
        *("--env", "docker", "--jobs-dir", str(folder / RUNS), "--job-name", "acme__python-5__1"),
        *("--n-concurrent", "1", "--yes", "--allow-agent-host", "api.test"),
    ]


def test_a_budget_in_dollars_stops_before_it_is_exceeded_and_a_second_call_finishes(runs, database):
    costs = ("--agent-kwarg", "dollars=2")
    first = run_loop(runs("half", *costs, model="openai/gpt", attempts=2, budget=RunBudget(dollars=5)).run())
    assert (first.graded, first.dollars, len(first.left)) == (2, 4.0, 2)
    assert "$4.00 of $5 are spent" in first.stopped
    # each task has had its turn
    assert {run.task_id for run in first.ended} == {"acme__python-5", "acme__c-5"}
    second = run_loop(runs("half", *costs, model="openai/gpt", attempts=2, budget=RunBudget(dollars=5)).run())
    assert (second.graded, second.left, second.stopped) == (2, (), "")
    assert len(stored(database)) == 4


def test_a_budget_in_dollars_needs_recorded_costs(runs):
    done = run_loop(runs("half", model="openai/gpt", budget=RunBudget(dollars=5)).run())
    assert (done.graded, len(done.left)) == (1, 1)
    assert "not recorded" in done.stopped


def test_what_runs_now_counts_as_the_most_expensive_run_so_far():
    ended = [agent_run("a", 1.0, dollars=3.0, seconds=1800.0)]
    assert RunBudget(dollars=9).objection(ended, running=1, seconds=0) == ""
    assert RunBudget(dollars=8.9).objection(ended, running=1, seconds=0)
    assert RunBudget(dollars=0).objection([], running=0, seconds=0)
    assert RunBudget(hours=1).objection(ended, running=1, seconds=1799) == ""
    assert "0.5 of 1 hours are over" in RunBudget(hours=1).objection(ended, running=1, seconds=1800)
    assert RunBudget().objection(ended, running=9, seconds=1e9) == ""
    # a container that did not start cost nothing
    assert RunBudget(dollars=9).objection([agent_run("a", None, model="m")], running=0, seconds=0) == ""


def test_runs_without_a_judgement_are_made_again_and_stay_stored(runs, database):
    first = run_loop(runs("flaky").run())
    assert (first.graded, len(first.ended), len(first.left)) == (1, 2, 1)
    assert first.stopped == ""
    while (last := run_loop(runs("flaky").run())).left:
        pass
    assert last.graded == 1
    states = [run.state for run in stored(database)]
    assert states.count(RunState.GRADED) == 2
    assert states.count(RunState.INFRASTRUCTURE) >= 1


@pytest.mark.parametrize(("agent", "lost"), [("broken", 0), ("silent", FAILURES_IN_A_ROW)])
def test_failures_in_a_row_stop_the_call(runs, agent, lost):
    done = run_loop(runs(agent, attempts=5).run())
    assert (len(done.ended) + len(done.lost), len(done.lost), len(done.left)) == (FAILURES_IN_A_ROW, lost, 10)
    assert "5 runs in a row" in done.stopped
    assert all("Docker is not running" in line for line in done.lost)


def test_runs_of_another_grader_are_made_again(runs, database):
    run_loop(runs("half").run())
    with database.transaction() as connection:
        for run in AGENT_RUNS.read(connection, MONTH):
            AGENT_RUNS.save(connection, [run.model_copy(update={"grader_sha256": "0" * 64})])
    assert len(runs("half").left()) == 2


def test_records_whose_storing_failed_are_taken_in_by_the_next_call(runs, database):
    broken = runs("half")
    take, calls = broken.take, []

    def fail_once(recorded):
        calls.append(recorded)
        if len(calls) == 1:
            raise ConfigurationError("no database")
        return take(recorded)

    broken.take = fail_once
    with pytest.raises(ConfigurationError, match="no database"):
        run_loop(broken.run())
    run_loop(runs("half").run())
    assert len(stored(database)) == 2


def test_a_task_that_cannot_be_exported_is_reported_and_left_out(runs):
    made = runs("half")
    made.tasks = [released_task("python"), released_task("c", image_digest=None)]
    done = run_loop(made.run())
    assert (done.graded, done.left) == (1, ())
    assert "acme__c-5" in made.unexportable[0]


@pytest.fixture
def release(tmp_path):
    """A dataset with one release of two tasks."""
    FolderDestination(tmp_path / "dataset").release(
        Month.parse(MONTH), tables_of([released_row(kind) for kind in KINDS])
    )
    return ["--from", str(tmp_path / "dataset"), "--release", TAG]


def test_the_command_runs_and_says_what_is_left(call_fc_data, database_url, harbor, release):
    settings = {"FC_DATABASE_URL": database_url, "FAKE_HARBOR": str(harbor.parent)}
    common = ["results", "run", *release, "--agent", "half", "--model", "openai/gpt", "--harbor", str(harbor)]
    cost = ["--", "--agent-kwarg", "dollars=2"]
    dry = call_fc_data(*common, "--attempts", "1", "--dry-run", *cost, **settings)
    assert "2 runs on 2 tasks are left" in dry.stdout
    first = call_fc_data(*common, "--attempts", "1", "--dollars", "3", *cost, **settings)
    assert first.returncode == 0, first.stderr
    assert "1 of 2: acme__c-5 has reward 0.50 (faster), $2.00" in first.stdout
    assert "1 runs judged, 0 failures of infrastructure, 0 without a record; $2.00 spent" in first.stdout
    assert "stopped: $2.00 of $3 are spent" in first.stdout
    assert "1 runs on 1 tasks are left; the same command makes them" in first.stdout
    second = call_fc_data(*common, "--attempts", "1", "--dollars", "3", *cost, **settings)
    assert "every task has its 1 judged runs" in second.stdout
    # other options are another experiment
    other = call_fc_data(*common, "--attempts", "1", "--dry-run", "--", "--agent-kwarg", "dollars=1", **settings)
    assert "2 runs on 2 tasks are left" in other.stdout


def test_the_command_gives_an_agent_its_hosts_and_variables(call_fc_data, database_url, harbor, release):
    settings = {"FC_DATABASE_URL": database_url, "FAKE_HARBOR": str(harbor.parent), "OPENAI_API_KEY": "sk-nobody"}
    common = ["results", "run", *release, "--agent", "half", "--harbor", str(harbor), "--attempts", "1"]
    access = [*("--allow-agent-host", "api.test", "--agent-env", "OPENAI_API_KEY", "--agent-env", "EFFORT=high")]
    done = call_fc_data(*common, *access, "--", "--mounts", "[]", **settings)
    assert done.returncode == 0, done.stderr
    command = json.loads((harbor.parent / "commands").read_text().splitlines()[0])
    # the key is only in the environment: neither in the list of processes nor in what Harbor stores
    assert command[command.index("--yes") + 1 :] == [
        *("--allow-agent-host", "api.test"),
        *("--agent-env", "OPENAI_API_KEY=${OPENAI_API_KEY}", "--agent-env", "EFFORT=high", "--mounts", "[]"),
    ]
    # another key is the same experiment
    again = call_fc_data(*common, *access, "--", "--mounts", "[]", **{**settings, "OPENAI_API_KEY": "sk-somebody"})
    assert "every task has its 1 judged runs" in again.stdout
    unset = call_fc_data(*common, "--agent-env", "NOWHERE_API_KEY", **settings)
    assert unset.returncode == 1
    assert "NOWHERE_API_KEY is not set" in unset.stderr


def test_the_command_refuses_what_can_never_run(call_fc_data, database_url, release, harbor):
    settings = {"FC_DATABASE_URL": database_url, "FAKE_HARBOR": str(harbor.parent)}
    missing = call_fc_data("results", "run", *release, "--agent", "codex", "--harbor", "no-such-harbor", **settings)
    assert missing.returncode == 1
    assert "there is no program no-such-harbor" in missing.stderr
    unknown = call_fc_data("results", "run", *release[:2], "--release", "formulacode@2020-01", "--agent", "nop")
    assert unknown.returncode == 1
    model = call_fc_data("results", "run", *release, "--agent", "nop", "--model", "openai/gpt", **settings)
    assert "needs neither a model" in model.stderr
    silent = call_fc_data("results", "run", *release, "--agent", "silent", "--harbor", str(harbor), **settings)
    assert silent.returncode == 1
    assert "no run was judged" in silent.stderr


def test_ctrl_c_reaches_harbor_and_the_next_call_continues(database_url, release, harbor, tmp_path):
    environment = {"FC_DATABASE_URL": database_url, "FC_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    environment |= {"FAKE_HARBOR": str(harbor.parent), "PATH": "/usr/bin:/bin"}
    command = [FC_DATA, "results", "run", *release, "--agent", "hanging", "--harbor", str(harbor)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        until((harbor.parent / "started").exists, seconds=60)
        began = time.monotonic()
        process.send_signal(2)
        _, complained = process.communicate(timeout=60)
    assert process.returncode == 130
    assert time.monotonic() - began < 8
    assert "run the same command again to continue" in complained
    until((harbor.parent / "interrupted").exists, seconds=10)
