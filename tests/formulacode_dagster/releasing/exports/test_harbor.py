"""Exported tasks in Harbor itself: its loader, and its runs of both its agents that need no model."""

from __future__ import annotations

import json
import math

import pytest

from formulacode_dagster.releasing.exports.formats import HarnessFormat
from tests.support.exports import ATTACK, LANGUAGES, PYTHON, C
from tests.support.harnesses import call
from tests.support.sampling import TAKES_MINUTES

pytestmark = [pytest.mark.docker, pytest.mark.network, pytest.mark.slow]

LOADED = """
import json, sys
from pathlib import Path
from harbor.models.task.task import Task
for folder in sys.argv[1:]:
    task = Task(Path(folder))
    print(json.dumps([task.name, task.config.verifier.user, task.config.environment.cpus]))
"""


@pytest.fixture(scope="module")
def tasks(exported):
    return {kind: exported(kind, HarnessFormat.HARBOR) for kind in (PYTHON, C, ATTACK)}


def run(agent, tasks, folder):
    """Rewards and metrics by task; raises where a trial ended in an exception."""
    options = ["--env", "docker", "--jobs-dir", "jobs", "--job-name", agent, "--n-concurrent", "1", "--yes"]
    asked = [f"--include-task-name={task.name}" for task in tasks]
    said = call(
        "harbor", "harbor", "run", "--path", str(tasks[0].parent), "--agent", agent, *options, *asked, cwd=folder
    )
    rewards = {}
    for result in (folder / "jobs" / agent).glob("*__*/result.json"):
        trial = json.loads(result.read_text())
        assert trial["exception_info"] is None, said
        # a solution that fails is no exception to Harbor
        assert not (result.parent / "agent" / "exit-code.txt").exists()
        assert not [*result.parent.rglob("planted")]
        rewards[trial["task_name"].partition("/")[2]] = trial["verifier_result"]["rewards"]
    return rewards


def test_harbors_own_loader_reads_the_tasks(tasks, tmp_path):
    told = call("harbor", "python", "-c", LOADED, *map(str, tasks.values()), cwd=tmp_path).splitlines()
    assert [json.loads(line) for line in told] == [[f"formulacode/{task.name}", "root", 2] for task in tasks.values()]


@TAKES_MINUTES
@pytest.mark.timeout(1700)
def test_the_oracle_gets_its_measured_reward_and_cheaters_get_nothing(tasks, tmp_path):
    honest = [tasks[kind] for kind in LANGUAGES]
    rewards = run("oracle", [*honest, tasks[ATTACK]], tmp_path)
    assert rewards.keys() == {task.name for task in (*honest, tasks[ATTACK])}
    cheated = rewards.pop(tasks[ATTACK].name)
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
