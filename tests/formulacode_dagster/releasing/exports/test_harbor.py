"""Exported tasks in Harbor itself: its checks, its agents without a model, and one that calls its model from inside."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from formulacode_dagster.models.month import Month
from formulacode_dagster.models.release import TaskRecord
from formulacode_dagster.operating.store.artifacts import AGENT_RUNS, TRAJECTORIES
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from formulacode_dagster.releasing.exports.formats import HarnessFormat
from sandbox.server import serving
from tests.support.agent_runs import MONTH, TAG
from tests.support.exports import ATTACK, FASTER_SQUARES, LANGUAGES, PYTHON, ROOT, C
from tests.support.harnesses import INSTALLED, call, call_harbor, harbor_program
from tests.support.release import tables_of
from tests.support.sampling import TAKES_MINUTES
from tests.support.scripted_model import Script, app

pytestmark = [pytest.mark.docker, pytest.mark.network, pytest.mark.slow]

LOADED = """
import json, sys
from pathlib import Path
from harbor.models.task.task import Task
for folder in sys.argv[1:]:
    task = Task(Path(folder))
    verifier, environment = task.config.verifier, task.config.environment
    told = [task.name, verifier.user, verifier.environment_mode.value, environment.network_mode.value, environment.cpus]
    print(json.dumps(told))
"""
CODEX = Path(".ci/agents/node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex").absolute()
MOUNTED = {"type": "bind", "target": "/usr/local/bin/codex", "read_only": True}
KEY = "sk-nobody-in-particular-17"
BRIDGE = "172.17.0.1"
"""The address at which containers find this machine."""


@pytest.fixture(scope="module")
def tasks(exported):
    return {kind: exported(kind, HarnessFormat.HARBOR) for kind in (PYTHON, C, ATTACK, ROOT)}


def run(agent, tasks, folder, *more):
    """Rewards and metrics by task; raises where a trial ended in an exception."""
    options = [
        "--env",
        "docker",
        "--jobs-dir",
        str(folder / "jobs"),
        "--job-name",
        agent,
        "--n-concurrent",
        "1",
        "--yes",
    ]
    asked = [f"--include-task-name={task.name}" for task in tasks]
    said = call_harbor("run", "--path", str(tasks[0].parent), "--agent", agent, *options, *asked, *more, cwd=folder)
    return rewards_of(folder / "jobs" / agent, said)


def rewards_of(job, said):
    rewards = {}
    for result in job.glob("*__*/result.json"):
        trial = json.loads(result.read_text())
        assert trial["exception_info"] is None, said
        # a solution that fails is no exception to Harbor
        assert not (result.parent / "agent" / "exit-code.txt").exists()
        assert not [*result.parent.rglob("planted")]
        rewards[trial["task_name"].partition("/")[2]] = trial["verifier_result"]["rewards"]
    return rewards


def test_harbors_own_checks_find_nothing(tasks, tmp_path):
    told = call("harbor", "python", "-c", LOADED, *map(str, tasks.values()), cwd=tmp_path).splitlines()
    assert [json.loads(line) for line in told] == [
        [f"formulacode/{task.name}", "root", "separate", "no-network", 2] for task in tasks.values()
    ]
    sound = [str(tasks[kind]) for kind in (PYTHON, C)]
    assert call("harbor", "harbor", "lint", "--select", "ALL", *sound, cwd=tmp_path).strip() == ""


@TAKES_MINUTES
@pytest.mark.timeout(1700)
def test_the_oracle_gets_its_measured_reward_and_cheaters_get_nothing(tasks, tmp_path):
    honest = [tasks[kind] for kind in LANGUAGES]
    rewards = run("oracle", [*honest, tasks[ATTACK], tasks[ROOT]], tmp_path)
    assert rewards.keys() == {task.name for task in (*honest, tasks[ATTACK], tasks[ROOT])}
    for kind in (ATTACK, ROOT):
        cheated = rewards.pop(tasks[kind].name)
        assert (cheated["reward"], cheated["speedup"]) == (0.0, 1.0)
    for told in rewards.values():
        wanted = math.log(told["speedup"]) / math.log(told["oracle_speedup"])
        assert told["reward"] == pytest.approx(min(1.0, wanted))
        assert told["reward"] > 0.5
        assert told["speedup"] > 1.5
        assert (told["tests"], told["tests_failed"]) == (2, 0)
    done = run("nop", honest, tmp_path)
    assert {name: (told["reward"], told["speedup"]) for name, told in done.items()} == dict.fromkeys(
        (task.name for task in honest), (0.0, 1.0)
    )


@TAKES_MINUTES
@pytest.mark.timeout(1700)
def test_an_agent_that_calls_its_model_from_inside_reaches_it_and_nothing_else(tasks, tmp_path):
    """Codex itself; its work is then graded a second time, without it."""
    if not CODEX.is_file():
        pytest.skip("no coding agents: .ci/install-agents")
    with serving(app(Script()), host="0.0.0.0") as elsewhere:  # noqa: S104 - every address but the one that is allowed
        # with the name of another host, to which nothing may go
        asked = f"u.Request('http://{BRIDGE}:{elsewhere.rpartition(':')[2]}', headers={{'Host': 'other.test'}})"
        tried = f'python3 -c "import urllib.request as u; u.urlopen({asked}, timeout=9)"'
        script = Script([f"{tried}; printf %s '{FASTER_SQUARES}' >shapes/__init__.py"])
        with serving(app(script), host=BRIDGE) as model:
            rewards = run(
                *("codex", [tasks[PYTHON]], tmp_path, "--model", "openai/gpt-5.5", "--allow-agent-host", BRIDGE),
                *("--agent-env", "OPENAI_API_KEY=sk-nobody", "--agent-env", f"OPENAI_BASE_URL={model}/v1"),
                *("--mounts", json.dumps([{**MOUNTED, "source": str(CODEX)}])),
            )
    assert set(script.keys) == {"sk-nobody"}
    assert "RemoteDisconnected" in str(script.requests[-1])
    assert rewards[tasks[PYTHON].name]["reward"] > 0.5
    options = ["--task-path", str(tasks[PYTHON]), "--jobs-dir", str(tmp_path / "jobs"), "--job-name", "again", "--yes"]
    said = call_harbor("job", "regrade", str(tmp_path / "jobs" / "codex"), *options, cwd=tmp_path)
    again = rewards_of(tmp_path / "jobs" / "again", said)
    assert again[tasks[PYTHON].name]["reward"] > 0.5


@TAKES_MINUTES
@pytest.mark.timeout(1700)
def test_an_installed_agent_is_run_on_a_release_and_taken_in(rows, tmp_path, database, database_url, call_fc_data):
    if not (INSTALLED / "harbor").is_dir() or not CODEX.is_file():
        pytest.skip("no harbor or no coding agents: .ci/install-harnesses, .ci/install-agents")
    FolderDestination(tmp_path / "dataset").release(
        Month.parse(MONTH), tables_of([TaskRecord.model_validate(rows[PYTHON])])
    )
    script = Script([f"printf %s '{FASTER_SQUARES}' >shapes/__init__.py"])
    with serving(app(script), host=BRIDGE) as model:
        done = call_fc_data(
            *("results", "run", "--from", str(tmp_path / "dataset"), "--release", TAG, "--attempts", "1"),
            *("--agent", "codex", "--model", "openai/gpt-5.5", "--allow-agent-host", BRIDGE),
            *("--agent-env", "OPENAI_API_KEY", "--agent-env", f"OPENAI_BASE_URL={model}/v1"),
            *("--harbor", harbor_program(tmp_path), "--"),
            *("--mounts", json.dumps([{**MOUNTED, "source": str(CODEX)}])),
            FC_DATABASE_URL=database_url,
            OPENAI_API_KEY=KEY,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "every task has its 1 judged runs" in done.stdout
    assert set(script.keys) == {KEY}
    recorded = [file for file in (tmp_path / "home" / "agent_runs").rglob("*") if file.is_file()]
    assert [file for file in recorded if KEY.encode() in file.read_bytes()] == []
    with database.transaction() as connection:
        (run,) = AGENT_RUNS.read(connection, MONTH)
        (trajectory,) = TRAJECTORIES.read(connection, MONTH)
    assert (run.source, run.agent, run.model, run.reason) == ("harbor", "codex", "openai/gpt-5.5", "faster")
    assert run.tokens_in
    assert run.reward is not None
    assert run.reward > 0.5
    assert trajectory.steps > 1
