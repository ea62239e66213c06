"""How the grader reads what a judged process answers: nothing of that may break it off."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from formulacode_dagster.releasing.exports.grader import harness_session
from formulacode_dagster.releasing.exports.grader.harness_session import Harness
from formulacode_dagster.releasing.exports.grader.running import Done

TASK = {
    "environment": {},
    "limits": {"benchmark_seconds": 60, "build_seconds": 60},
    "benchmark_dir": "benchmarks/",
    "package_root": "",
    "packages": ["shapes"],
    "survey_seconds": 60,
    "test_seconds": 60,
}


class AnsweringPlace:
    """An arm whose processes answer with the lines that *answer* makes of the number of the process and its request."""

    arm, python, repository = "agent", "python", "/repo"

    def __init__(self, answer):
        self._answer = answer
        self.requests = []

    def run(self, argv, *, stdin, **_):
        request = json.loads(stdin)
        self.requests.append(request)
        lines = [f"{request['nonce']} {line}" for line in self._answer(len(self.requests), request)]
        return Done(0, "\n".join(lines).encode(), [], b"", 0.0, False)


def event(kind, **fields):
    return json.dumps({"event": kind, **fields})


@pytest.mark.parametrize("opening", ["[", '{"event":'])
def test_an_answer_that_is_nested_too_deeply_is_none(opening):
    place = AnsweringPlace(lambda *_: [opening * 100_000, event("benchmark", name="bench.time", outcome="ran")])
    surveyed, _ = Harness("", TASK).survey(place, ["bench.time"])
    assert surveyed["bench.time"]["outcome"] == "ran"


@pytest.mark.parametrize(("folder", "root"), [("asv/suite/", "/repo/asv/suite"), (".", "/repo")])
def test_a_suite_is_imported_by_the_name_of_its_folder(folder, root):
    place = AnsweringPlace(lambda *_: [])
    Harness("", {**TASK, "benchmark_dir": folder}).survey(place, [])
    assert place.requests[0]["root"] == root


def test_tests_that_no_request_names_start_no_other_process():
    place = AnsweringPlace(lambda number, _: [event("started", name=f"test_{number}")] if number < 99 else [])
    assert Harness("", TASK).tests(place, "/repo", ["test_a", "test_b"], 60).outcomes == {}
    assert len(place.requests) == 1


def test_each_test_may_end_one_process():
    def answers(_, request):
        left = [name for name in request["named"] if name not in request["without"]]
        return [event("started", name=left[0])] if left else [event("end")]

    place = AnsweringPlace(answers)
    outcomes = Harness("", TASK).tests(place, "/repo", ["test_a", "test_b"], 60).outcomes
    assert outcomes == {"test_a": "crash", "test_b": "crash"}
    assert len(place.requests) == 3


def test_tests_that_end_processes_share_the_time_of_all(monkeypatch):
    """One that never ends takes a process's whole time, and there are thousands."""
    clock = iter(range(0, 10_000, 25))
    monkeypatch.setattr(harness_session, "time", SimpleNamespace(monotonic=lambda: next(clock)), raising=False)
    place = AnsweringPlace(lambda _, request: [event("started", name=f"test_{len(request['without'])}")])
    Harness("", TASK).tests(place, "/repo", [f"test_{n}" for n in range(100)], 60)
    assert len(place.requests) == 2
