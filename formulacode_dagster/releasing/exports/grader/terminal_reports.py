"""Prints a grade in the forms that harnesses read from a terminal.

Nothing is printed that the agent could have named: the harnesses take the first thing that looks like a result.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Callable, Dict  # noqa: UP035 - CPython 3.7 evaluates the aliases below

NOT_GRADABLE = "not_gradable"
BREAKS_GRADER = "breaks_grader"
"""Reason for no reward if the grader fails over the agent's code or what it answers."""
TOO_SLOW = frozenset({"no_change", "inconclusive", "unchanged", "slower", "trade_off"})
"""Reasons for no reward that say nothing against the work but that it is not faster."""
OTHER_RESULTS = frozenset({"returns_other", "benchmarks_fail"})
LEVELS = 4


def formulacode(report: dict[str, Any], task: dict[str, Any], agent: str) -> str:
    """Three blocks, as `FormulaCodeParser` of fc-eval 0.1 reads them; for an ungradable task, one it calls an error.

    Its `resolved` means that nothing is broken, and the speed is reported next to it: doing nothing resolves, with 1.0.
    """
    if report["reason"] == NOT_GRADABLE:
        return _block("RESULT", {"agent_advantage": NOT_GRADABLE})
    names = task["benchmarks"]
    is_right = report["reason"] == "faster" or report["reason"] in TOO_SLOW
    measured = report.get("benchmarks", {})
    speedups = {}
    for name in names:
        ratio = measured[name]["speedup"] if measured and is_right else 1.0
        authors = measured[name]["oracle_speedup"] if measured else task["speedups"][name]
        speedups[name] = {
            "agent/nop": _short(ratio),
            "oracle/nop": _short(authors),
            "advantage": _short(ratio - authors),
        }
    key = agent_key(agent)
    advantages = {f"agent_advantage_level{level}": _advantage(speedups, level) for level in range(1, LEVELS + 1)}
    counts = {"num_valid_benchmarks": len(names), "total_benchmarks": len(names)}
    advantage = {"agent_advantage": advantages[f"agent_advantage_level{LEVELS}"], **advantages, **counts}
    result = {
        **advantage,
        "last_agent": key,
        "per_benchmark_speedups": speedups,
        "per_benchmark_speedups_by_agent": {key: speedups},
        "agent_advantages_by_agent": {key: advantage},
    }
    tests = _tests(report["metrics"], len(task["pass_to_pass"]), is_right)
    broken = int(report["reason"] in OTHER_RESULTS)
    counts = {"passed": len(names) - broken, "failed": broken, "skipped": 0, "total": len(names)}
    snapshot = {**counts, "pass-to-pass": len(names) - broken, "pass-to-fail": broken}
    return "\n".join([_block("TESTS", tests), _block("RESULT", result), _block("SNAPSHOT", snapshot)])


def pytest(report: dict[str, Any], _task: dict[str, Any], _agent: str) -> str:
    """The end of pytest's output, as terminal-bench 0.2 reads it: resolved means faster.

    Without it, as for an ungradable task, terminal-bench reports an error.
    """
    if report["reason"] == NOT_GRADABLE:
        return NOT_GRADABLE
    reason, metrics = report["reason"], report["metrics"]
    figures = ", ".join(f"{name} {_short(metrics[name])}" for name in sorted(metrics))
    tests = "SKIPPED" if "tests" not in metrics else "FAILED" if metrics["tests_failed"] else "PASSED"
    return "\n".join(
        [
            figures,
            "=========== short test summary info ===========",
            f"{tests} grader::tests",
            "PASSED grader::faster" if reason == "faster" else f"FAILED grader::faster - {reason}",
        ]
    )


TOLD: Dict[str, Callable[[Dict[str, Any], Dict[str, Any], str], str]] = {  # noqa: UP006 - evaluated on CPython 3.7
    "fc-eval": formulacode,
    "terminal-bench": pytest,
}


def _tests(metrics: dict[str, float], wanted: int, is_right: bool) -> dict[str, int]:
    """Count how tests ended; another kind of reason is one more failure, since no other block reports it."""
    were_run = "tests" in metrics
    failed = int(metrics.get("tests_failed", 0)) or int(not is_right)
    passed = int(metrics["tests"] - metrics["tests_failed"]) if were_run else 0
    skipped = 0 if were_run else wanted
    return {"passed": passed, "failed": failed, "error": 0, "skipped": skipped, "total": passed + failed + skipped}


def agent_key(agent: str) -> str:
    """`agent:model`, by which fc-eval merges the results of several agents, from its variables in the container.

    That is `agent-2-oracle:gpt` for the second of several, the model for a single agent, and nothing without a model.
    """
    told = re.sub(r"^agent-\d+-", "", agent) or "nop"
    return told if ":" in told else f"{told.lower()}:{told}"


def _advantage(speedups: dict[str, dict[str, float]], level: int) -> float:
    """Mean of the agent's speed-up less the author's: over modules (level 1), classes, functions, or of all (4)."""
    groups: dict[tuple[str, ...], list[dict[str, float]]] = {}
    for name, told in speedups.items():
        parts = name.partition("(")[0].split(".")
        owner = parts[-2] if len(parts) > 2 and parts[-2][:1].isupper() else ""
        module = ".".join(parts[: -2 if owner else -1])
        group = (module, owner, parts[-1])[:level] if level < LEVELS else ()
        groups.setdefault(group, []).append(told)
    gains = [_mean(group, "agent/nop") - _mean(group, "oracle/nop") for group in groups.values()]
    return _short(math.fsum(gains) / len(gains))


def _mean(group: list[dict[str, float]], key: str) -> float:
    return math.exp(math.fsum(math.log(told[key]) for told in group) / len(group))


def _short(number: float) -> float:
    return float(f"{number:.6g}")


def _block(name: str, content: dict[str, Any]) -> str:
    """One line between two marks; a space at the end of a line of the terminal would be lost."""
    told = json.dumps(content, separators=(",", ":"), sort_keys=True).replace(" ", "\\u0020")
    return f"FORMULACODE_{name}_START\n{told}\nFORMULACODE_{name}_END"
