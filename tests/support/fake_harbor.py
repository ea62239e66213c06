"""A stand-in for Harbor's program: writes what `harbor run` would for one task, in a moment and without Docker.

It runs as a process of its own, with nothing but the standard library. `FAKE_HARBOR` names a folder of its state: the
commands it got, and what it does next. Agents: `oracle`, `nop`, `half`, `cheat`, and `flaky`, which fails every other
time; `dollars=` among the options is what a run costs.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
import uuid
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).parents[1] / "formulacode_dagster" / "releasing" / "results" / "recorded"
REWARDS = {"oracle": 1.0, "half": 0.5}
REASONS = {"nop": "unchanged", "cheat": "returns_other"}


def main(arguments: list[str]) -> None:
    """Write the job of one `harbor run`."""
    pairs = [word for word in arguments[1:] if word != "--yes"]
    options = dict(zip(pairs[::2], pairs[1::2], strict=True))
    state = Path(os.environ["FAKE_HARBOR"])
    with (state / "commands").open("a") as file:
        file.write(json.dumps(arguments) + "\n")
    count = len((state / "commands").read_text().splitlines())
    task, agent = Path(options["--path"]), options["--agent"]
    if agent == "hanging":
        (state / "started").touch()
        try:
            time.sleep(600)
        except KeyboardInterrupt:
            (state / "interrupted").touch()
            raise
    if agent == "silent":
        sys.stdout.write("Docker is not running\n")
        return
    job = Path(options["--jobs-dir"], options["--job-name"])
    trial = job / f"{task.name}__{uuid.uuid4().hex[:7]}"
    trial.mkdir(parents=True)
    (job / "result.json").write_bytes((RECORDED / "harbor_job_result.json").read_bytes())
    failed = agent == "broken" or (agent == "flaky" and count % 2)
    result = json.loads((RECORDED / "harbor_trial_result.json").read_text())
    result.update(task_name=f"formulacode/{task.name}", trial_name=trial.name)
    model = {"name": options["--model"].rpartition("/")[2], "provider": "openai"} if "--model" in options else None
    result["agent_info"] = {"name": agent, "version": "1.0", "model_info": model}
    cost = options.get("--agent-kwarg", "").partition("dollars=")[2]
    result["agent_result"] = {"n_input_tokens": 10, "n_output_tokens": 2, "cost_usd": float(cost) if cost else None}
    if failed:
        result["exception_info"] = {"exception_type": "EnvironmentStartTimeoutError", "exception_message": "too slow"}
        result.update(verifier_result=None, reward_valid=False)
    else:
        write(trial / "verifier" / "report.json", report(task, agent))
    write(trial / "result.json", result)
    lock = json.loads((RECORDED / "harbor_trial_lock.json").read_text())
    lock["task"]["digest"] = f"sha256:{digest(task)}"
    write(trial / "lock.json", lock)
    (trial / "artifacts").mkdir()
    (trial / "artifacts" / "agent.diff").write_text(f"diff of {trial.name}\n")


def report(task: Path, agent: str) -> dict[str, Any]:
    """The grader's report, with the hashes that it has of its own folder."""
    reward = REWARDS.get(agent, 1.0 if agent == "flaky" else 0.0)
    tests = task / "tests"
    grader = (tests / "grader.pyz").read_bytes() + (tests / "harness.pyz").read_bytes()
    return {
        "task": task.name,
        "task_sha256": hashlib.sha256((tests / "task.json").read_bytes()).hexdigest(),
        "grader_sha256": hashlib.sha256(grader).hexdigest(),
        "reason": REASONS.get(agent, "faster"),
        "metrics": {"reward": reward, "speedup": 16.0**reward, "oracle_speedup": 16.0, "tests": 2, "tests_failed": 0},
    }


def digest(task: Path) -> str:
    """Harbor's hash of the folder *task*."""
    whole = hashlib.sha256()
    for file in sorted(path.relative_to(task).as_posix() for path in task.rglob("*") if path.is_file()):
        whole.update(f"{file}\0{hashlib.sha256((task / file).read_bytes()).hexdigest()}\n".encode())
    return whole.hexdigest()


def write(file: Path, content: object) -> None:
    """Write *content* to *file*."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))


if __name__ == "__main__":
    main(sys.argv[1:])
