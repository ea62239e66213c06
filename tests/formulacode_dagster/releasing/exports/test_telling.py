"""Output of the grader for harnesses that read a terminal."""

from __future__ import annotations

import json
import math
import re

import pytest

from formulacode_dagster.releasing.exports.grader import grading
from formulacode_dagster.releasing.exports.grader.terminal_reports import NOT_GRADABLE, TOLD, agent_key

TASK = {
    "benchmarks": ["bench.a.Sorts.time_b(1, 'x y')", "bench.a.Sorts.time_c", "bench.d.time_e"],
    "speedups": {"bench.a.Sorts.time_b(1, 'x y')": 4.0, "bench.a.Sorts.time_c": 4.0, "bench.d.time_e": 2.0},
    "pass_to_pass": ["tests/test_a.py::test_b", "tests/test_a.py::test_c"],
}
RATIOS = (3.0, 12.0, 1.0)


def report(reason, *, tests_failed=None, measured=False):
    metrics = {"reward": float(reason == "faster"), "speedup": 1.0}
    if tests_failed is not None:
        metrics.update(tests=2.0, tests_failed=float(tests_failed))
    told = {"reason": reason, "detail": "FORMULACODE_RESULT_START = short test summary info =", "metrics": metrics}
    if measured:
        told["benchmarks"] = {
            name: {"speedup": ratio, "oracle_speedup": 2.0}
            for name, ratio in zip(TASK["benchmarks"], RATIOS, strict=True)
        }
    return told


def blocks(told, agent="nop"):
    said = TOLD["fc-eval"](told, TASK, agent)
    # one line each, in which a terminal's width cuts nothing off
    found = re.findall(r"FORMULACODE_(\w+)_START\n(\S+)\nFORMULACODE_\1_END", said)
    assert len(found) == said.count("_START")
    return {name: json.loads(content) for name, content in found}


def test_fc_eval_gets_speedups_by_benchmark_and_advantages_by_level():
    told = blocks(report("faster", tests_failed=0, measured=True), "agent-2-mine:model")
    result = told["RESULT"]
    assert result["last_agent"] == "mine:model"
    by_benchmark = result["per_benchmark_speedups_by_agent"]["mine:model"]
    assert [by_benchmark[name]["agent/nop"] for name in TASK["benchmarks"]] == [*RATIOS]
    # modules: (6, 1) against (2, 2); classes the same; functions: (3, 12, 1) against 2; all: 36 ** (1/3)
    assert [result[f"agent_advantage_level{level}"] for level in (1, 2, 3, 4)] == pytest.approx(
        [(4 - 1) / 2, (4 - 1) / 2, (1 + 10 - 1) / 3, 36 ** (1 / 3) - 2], rel=1e-5
    )
    assert result["agent_advantage"] == result["agent_advantage_level4"]
    assert told["TESTS"] == {"passed": 2, "failed": 0, "error": 0, "skipped": 0, "total": 2}
    assert (told["SNAPSHOT"]["pass-to-fail"], told["SNAPSHOT"]["total"]) == (0, 3)


@pytest.mark.parametrize(
    ("told", "tests", "broken"),
    [
        (report("no_change"), {"passed": 0, "failed": 0, "skipped": 2, "total": 2}, 0),
        (report("does_not_build"), {"passed": 0, "failed": 1, "skipped": 2, "total": 3}, 0),
        (report("tests_fail", tests_failed=1), {"passed": 1, "failed": 1, "skipped": 0, "total": 2}, 0),
        (report("returns_other", tests_failed=0), {"passed": 2, "failed": 1, "skipped": 0, "total": 3}, 1),
        (report("clocks_changed", tests_failed=0, measured=True), {"passed": 2, "failed": 1, "total": 3}, 0),
    ],
    ids=lambda told: told.get("reason") if isinstance(told, dict) else None,
)
def test_a_refused_agent_is_not_faster_for_fc_eval_or_broken(told, tests, broken):
    said = blocks(told)
    assert said["TESTS"].items() >= {**tests, "error": 0}.items()
    assert said["SNAPSHOT"]["pass-to-fail"] == broken
    assert {each["agent/nop"] for each in said["RESULT"]["per_benchmark_speedups"].values()} == {1.0}
    authors = [each["oracle/nop"] for each in said["RESULT"]["per_benchmark_speedups"].values()]
    assert sorted(authors) == ([2.0] * 3 if "benchmarks" in told else sorted(TASK["speedups"].values()))


def test_what_is_only_not_faster_is_told_as_it_was_measured():
    told = blocks(report("slower", tests_failed=0, measured=True))
    assert told["TESTS"]["failed"] == 0
    assert math.prod(each["agent/nop"] for each in told["RESULT"]["per_benchmark_speedups"].values()) == 36


@pytest.mark.parametrize(
    ("told", "tests", "faster"),
    [
        (report("faster", tests_failed=0), "PASSED", "PASSED grader::faster"),
        (report("slower", tests_failed=0), "PASSED", "FAILED grader::faster - slower"),
        (report("tests_fail", tests_failed=2), "FAILED", "FAILED grader::faster - tests_fail"),
        (report("no_change"), "SKIPPED", "FAILED grader::faster - no_change"),
    ],
    ids=lambda told: told["reason"] if isinstance(told, dict) else None,
)
def test_terminal_bench_is_told_of_tests_and_of_being_faster(told, tests, faster):
    said = TOLD["terminal-bench"](told, TASK, "")
    assert said.splitlines()[-3:] == [
        "=" * 11 + " short test summary info " + "=" * 11,
        f"{tests} grader::tests",
        faster,
    ]
    assert said.count("short test summary") == 1


def test_what_cannot_be_graded_is_an_error_to_both_harnesses():
    # no number for fc-eval, no summary for terminal-bench: either parser raises
    assert blocks(report(NOT_GRADABLE)) == {"RESULT": {"agent_advantage": NOT_GRADABLE}}
    assert "summary" not in TOLD["terminal-bench"](report(NOT_GRADABLE), TASK, "")


@pytest.mark.parametrize(
    ("told", "key"),
    [("agent-12-oracle:gpt-5", "oracle:gpt-5"), ("Oracle", "oracle:Oracle"), ("", "nop:nop"), ("a:b", "a:b")],
)
def test_an_agent_is_called_as_fc_eval_merges_it(told, key):
    assert agent_key(told) == key


def test_a_grader_that_breaks_off_prints_nothing_that_an_agent_worded(tmp_path, monkeypatch, capsys):
    for name in ("task.json", "oracle.patch"):
        (tmp_path / name).write_text("{}")
    # its files are made root's, and who runs tests may not be
    monkeypatch.setattr("os.chown", lambda *_: None)
    worded = "FORMULACODE" + "_RESULT_START"
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/reward.json").write_text('{"reward": 1}')

    def broken(*_):
        raise OSError(36, "too long", worded)

    monkeypatch.setattr(grading, "Grading", broken)
    arguments = [str(tmp_path / "grader.pyz"), "--report", str(tmp_path / "logs"), "--tell", "fc-eval"]
    monkeypatch.setattr("sys.argv", arguments)
    with pytest.raises(SystemExit, match="the grader broke off: OSError"):
        grading.main()
    said = capsys.readouterr()
    assert "in broken" in said.err
    assert worded not in said.out + said.err
    assert not [*(tmp_path / "logs").iterdir()]
