"""Exported tasks in the harnesses that type into a terminal, fc-eval and terminal-bench themselves."""

from __future__ import annotations

import json
import math
import uuid

import pytest

from formulacode_dagster.building.engines.docker.daemon import DockerDaemon
from formulacode_dagster.releasing.exports.formats import HarnessFormat
from tests.support.exports import ATTACK, BENCHMARKS, LANGUAGES, PYTHON
from tests.support.harnesses import call
from tests.support.sampling import TAKES_MINUTES

pytestmark = [pytest.mark.docker, pytest.mark.network, pytest.mark.slow]

KINDS = (*LANGUAGES, ATTACK)


@pytest.fixture
def run(exported, tmp_path):
    """`run(format, program, options)`: the result of each kind of task, which are run by the harness of that format."""

    def results(format_, program, *options, kinds=KINDS, name="run"):
        tasks = {kind: exported(kind, format_) for kind in kinds}
        (folder,) = {task.parent for task in tasks.values()}
        dataset = ["--dataset-path", str(folder), *(f"--task-id={task.name}" for task in tasks.values())]
        output = ["--output-path", "runs", "--run-id", name, "--n-concurrent", "1", "--no-cleanup"]
        try:
            said = call(format_, program, "run", *dataset, *output, *options, cwd=tmp_path)
        finally:
            for task in tasks.values():
                DockerDaemon().run(["rmi", "--force", f"tb__{task.name}__client"], timeout=60)
        told = json.loads((tmp_path / "runs" / name / "results.json").read_text())["results"]
        by_task = {result["task_id"]: result for result in told}
        assert by_task.keys() == {task.name for task in tasks.values()}, said
        assert not [*tmp_path.rglob("planted")]
        return {kind: by_task[task.name] for kind, task in tasks.items()}

    return results


@TAKES_MINUTES
@pytest.mark.timeout(1700)
def test_fc_eval_reports_the_speed_of_agents_in_one_container(run):
    results = run(HarnessFormat.FC_EVAL, "fc-eval", "--agents", "oracle:oracle", "--agents", "nop:nop")
    for kind, result in results.items():
        by_agent = result["parser_extra_metrics"]["agent_metrics_by_agent"]
        assert by_agent.keys() == {"oracle:oracle", "nop:nop"}, result
        oracle, nop = by_agent["oracle:oracle"], by_agent["nop:nop"]
        assert (nop["task_speedup"], nop["success"]) == (1.0, True)
        assert nop["agent_advantage"] < -0.5
        assert oracle["success"]
        if kind == ATTACK:
            assert oracle["task_speedup"] == 1.0
        else:
            assert oracle["task_speedup"] > 1.5
            assert oracle["pytest_summary"]["passed"] == 2
            ((name, measured),) = oracle["per_benchmark_speedups"].items()
            assert name == BENCHMARKS[kind]
            assert measured["agent/nop"] == pytest.approx(oracle["task_speedup"])
            # the author's code against itself
            assert math.log(measured["agent/nop"]) > 0.5 * math.log(measured["oracle/nop"])


@TAKES_MINUTES
@pytest.mark.timeout(1700)
def test_terminal_bench_resolves_what_is_faster_alone(run):
    told = {}
    for agent, kinds in (("oracle", KINDS), ("nop", LANGUAGES)):
        results = run(
            HarnessFormat.TERMINAL_BENCH,
            "tb",
            "--agent",
            agent,
            "--no-upload-results",
            kinds=kinds,
            name=f"run-{agent}",
        )
        told[agent] = {kind: (result["is_resolved"], result["parser_results"]) for kind, result in results.items()}
    right, not_faster = {"tests": "passed", "faster": "passed"}, {"tests": "passed", "faster": "failed"}
    assert told["oracle"] == {**dict.fromkeys(LANGUAGES, (True, right)), ATTACK: (False, not_faster)}
    assert told["nop"] == dict.fromkeys(LANGUAGES, (False, not_faster))


LEFT = """
setsid sleep 1000 </dev/null >/dev/null 2>&1 &
echo 'squares = total = None' >>shapes/__init__.py
touch /tmp/left ~/left shapes/left "$FC_VENV/left"
rm "$FC_VENV/bin/python"
"""
# what has ended stays listed: nothing waits for it
FOUND = """
awk '/^Name:/ { name = $2 } /^State:/ && $2 != "Z" && name == "sleep" { n++ } END { print n + 0 }' /proc/[0-9]*/status
git status --porcelain --ignored
ls -d /tmp/left ~/left "$FC_VENV"/left /oracle/* /tests/* 2>/dev/null
cd / && python -c 'import shapes; print(shapes.squares(3))'
"""


def test_the_next_agent_of_fc_eval_finds_nothing_of_the_one_before(exported, tmp_path):
    folder, daemon, name = (
        exported(PYTHON, HarnessFormat.FC_EVAL),
        DockerDaemon(),
        f"formulacode-{uuid.uuid4().hex[:12]}",
    )

    def docker(*arguments):
        done = daemon.run([*arguments], timeout=600)
        assert done.ok, done.stderr
        return done.stdout.decode()

    image = docker("build", "--quiet", str(folder)).strip()
    try:
        docker("run", "--detach", "--network=none", f"--name={name}", image, "/opt/formulacode/bin/hold", "infinity")

        def setup():
            docker("cp", str(folder / "run-setup.sh"), f"{name}:/tests/run-setup.sh")
            docker("exec", "--user=root", name, "bash", "/tests/run-setup.sh")

        setup()
        before = docker("exec", name, "bash", "-c", FOUND)
        docker("exec", name, "bash", "-ec", LEFT)
        docker("cp", str(folder / "solution.sh"), f"{name}:/oracle/solution.sh")
        docker("cp", f"{folder / 'tests'}/.", f"{name}:/tests")
        setup()
        assert docker("exec", name, "bash", "-c", FOUND) == before
        assert before.split()[0] == "0"
        assert before.endswith("[0, 1, 4]\n")
    finally:
        daemon.run(["rm", "--force", "--volumes", name], timeout=60)
        daemon.run(["rmi", image], timeout=60)
