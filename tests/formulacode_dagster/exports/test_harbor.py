"""Exported tasks in Harbor itself: its loader, and its runs of both its agents that need no model."""

from __future__ import annotations

import json
import math
import os
import subprocess
from pathlib import Path

import pytest

from formulacode_dagster.exports.write import Format
from tests.support.exports import PYTHON, C

# one image serves all of them
pytestmark = [pytest.mark.docker, pytest.mark.network, pytest.mark.slow, pytest.mark.xdist_group("exports")]

BIN = Path(__file__).parents[3] / ".harnesses" / "harbor" / "bin"
QUIET = {"HARBOR_TELEMETRY": "off", "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
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
    if not BIN.is_dir():
        pytest.skip("Harbor is not installed; run .ci/install-harnesses")
    return [exported(kind, Format.HARBOR) for kind in (PYTHON, C)]


def call(*command, cwd):
    # no network but the machine's own: what is downloaded while it runs is missed here
    done = subprocess.run(
        ["unshare", "--net", *command],
        cwd=cwd,
        env={**os.environ, **QUIET, "HOME": str(cwd)},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def run(agent, tasks, folder):
    """Rewards and metrics by task; raises where a trial ended in an exception."""
    dataset = tasks[0].parent
    options = ["--env", "docker", "--jobs-dir", "jobs", "--job-name", agent, "--n-concurrent", "1", "--yes"]
    said = call(str(BIN / "harbor"), "run", "--path", str(dataset), "--agent", agent, *options, cwd=folder)
    rewards = {}
    for result in (folder / "jobs" / agent).glob("*__*/result.json"):
        trial = json.loads(result.read_text())
        assert trial["exception_info"] is None, said
        # a solution that fails is no exception to Harbor
        assert not (result.parent / "agent" / "exit-code.txt").exists()
        rewards[trial["task_name"].partition("/")[2]] = trial["verifier_result"]["rewards"]
    return rewards


def test_harbors_own_loader_reads_the_tasks(tasks, tmp_path):
    told = call(str(BIN / "python"), "-c", LOADED, *map(str, tasks), cwd=tmp_path).splitlines()
    assert [json.loads(line) for line in told] == [[f"formulacode/{task.name}", "root", 2] for task in tasks]


@pytest.mark.timeout(1700)
def test_the_oracle_gets_what_is_measured_of_it_and_who_does_nothing_gets_nothing(tasks, tmp_path):
    names = {task.name for task in tasks}
    rewards = run("oracle", tasks, tmp_path)
    assert rewards.keys() == names
    for told in rewards.values():
        wanted = math.log(told["speedup"]) / math.log(told["oracle_speedup"])
        assert told["reward"] == pytest.approx(min(1.0, wanted))
        assert told["reward"] > 0.5
        assert told["speedup"] > 1.5
        assert (told["tests"], told["tests_failed"]) == (2, 0)
    done = run("nop", tasks, tmp_path)
    assert {name: (told["reward"], told["speedup"]) for name, told in done.items()} == dict.fromkeys(names, (0.0, 1.0))
