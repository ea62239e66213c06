"""Asking the harness of `suites/` in an arm; the platform's own `suites.remote` asks the same."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import secrets
import time
from typing import TYPE_CHECKING, Any, NamedTuple

from .places import AGENT, Place
from .running import Done, Moment, pace

if TYPE_CHECKING:
    from collections.abc import Iterator

START_SECONDS = 20.0
TAIL_CHARACTERS = 2000
PADDING_STEPS = 4096
MEETINGS = ("begin", "finish")
"""Events after which a timed process stops until the clocks outside have been read."""
NUMBERS = ("value", "calls", "accounted", "setups", "measured", "counted", "batches")
NO_MOMENT = Moment(0.0, 0.0)
MOST_NUMBERS = 200_000
"""Floats of a value that a survey reports."""


class TimedProcess(NamedTuple):
    """Answers of one process that timed benchmarks."""

    samples: list[dict[str, Any]]
    """One for each benchmark; with `wall` and `cpu`, the seconds of its batches by the clocks outside, if it met."""
    prepared: float
    """CPU seconds outside its batches, as the kernel counts them: imports, setups, caches, and all else."""
    cpu: float
    """CPU seconds of all its processes."""
    is_forged: bool
    """Whether more than one answer came for a benchmark, or one of more calls than it was asked for."""
    memory: float
    """Most memory that it was seen to occupy, as a multiple of the peak that it says; 0 if it says none."""
    pace: float
    """CPU seconds of a fixed piece of the grader's own work before and after it, on its core."""


class EndedTests(NamedTuple):
    """How tests ended in one checkout."""

    outcomes: dict[str, str]
    """By name; one that did not end has no entry."""
    tools: dict[str, str]
    """Hashes of the code that decided so, by name."""


def random_setting() -> dict[str, str]:
    """Return a random hash seed and start of the stack, as `suites.remote` gives every process."""
    generator = random.SystemRandom()
    padding = generator.randrange(PADDING_STEPS)
    return {"PYTHONHASHSEED": str(generator.randrange(1, 2**32)), "FC_PADDING": "." * padding}


def read_number(told: object) -> float:
    """Return a number of an answer, which the timed code may have written; NaN if it is none."""
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        return float(told)  # type: ignore[arg-type]  # that is what raises
    return math.nan


def read_sample(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the outcome of a sample, and its numbers, which are finite if it is `timed`."""
    outcome, told = str(answer.get("outcome")), {name: read_number(answer.get(name, 0.0)) for name in NUMBERS}
    if not all(math.isfinite(number) and number >= 0 for number in told.values()):
        outcome, told = "unreadable", dict.fromkeys(NUMBERS, 0.0)
    elif outcome == "timed" and not told["value"]:
        outcome = "unreadable"
    proof, tampered = answer.get("proof"), answer.get("tampered")
    return {
        "outcome": outcome,
        "message": str(answer.get("message", "")),
        "proof": proof if isinstance(proof, list) else [],
        "tampered": [str(name) for name in tampered] if isinstance(tampered, list) else [],
        "is_clocked": "accounted" in answer,
        **told,
    }


class Harness:
    """The harness, as it runs in the arms of one task."""

    def __init__(self, archive: str, task: dict[str, Any]) -> None:
        self._archive, self._task = archive, task
        instrument = {"PYTHONPATH": "/opt/formulacode/instrument"}
        self._environment: dict[str, str] = {**instrument, **task["environment"]}
        self._limit = float(task["limits"]["benchmark_seconds"])
        self.closed = True
        """Whether benchmarks may start no process and no thread."""
        self.arm = AGENT
        """The arm at work, which is to blame for an error: the agent's, while answers of several are read."""
        self._setting = random_setting()
        """Variables of all processes but those that are timed, which have others of the same kind."""

    @contextlib.contextmanager
    def working_on(self, arm: str) -> Iterator[None]:
        """Hold *arm* responsible for the block, and where that raises, from then on; `` for the grader's own work."""
        before, self.arm = self.arm, arm
        yield
        self.arm = before

    def survey(self, place: Place, names: list[str]) -> tuple[dict[str, dict[str, Any]], str]:
        """Return the result of running each of *names* once, by name, with return values; and the reason if it broke
        off.
        """
        request = {
            **self._where(place),
            "lines": {},
            "compiled": {},
            "names": [],
            "ruled_out": [],
            "skip": [],
            "command": "survey",
            "only": names,
            "limit": self._limit,
            "import_limit": self._limit,
            "budget": self._task["survey_seconds"],
            "enough": None,
            "coverage": "",
            "results": True,
            "parts": MOST_NUMBERS,
            "closed": self.closed,
        }
        longest = self._task["survey_seconds"] + 2 * self._limit + START_SECONDS
        answers, done = self._ask(place, request, longest, self._setting)
        found = (answer for answer in answers if answer["event"] == "benchmark")
        return {str(answer.get("name")): answer for answer in found}, _ended(done)

    def time(self, place: Place, asked: list[dict[str, Any]], setting: dict[str, Any]) -> TimedProcess:
        """Sample each benchmark *asked* in one fresh process."""
        request = {
            **self._where(place),
            "command": "time",
            "benchmarks": asked,
            "closed": self.closed,
            "meets": True,
            **setting["request"],
        }
        longest = sum(float(each["timeout"]) for each in asked) + START_SECONDS
        metrics = self._task["rule"]["benchmark_metrics"]
        peaks = [at for at, each in enumerate(asked) if metrics.get(each["name"]) == "peakmemory"]
        environment = setting["environment"]
        before = pace()
        answers, done = self._ask(place, request, longest, environment, meets=True, watches_memory=bool(peaks))
        passed = before + pace()
        lost = {"outcome": "crash", "message": _ended(done)}
        meetings = iter(done.meetings)
        by_event: dict[str, dict[int, dict[str, Any]]] = {"begin": {}, "finish": {}, "sample": {}}
        met: dict[str, dict[int, Moment]] = {event: {} for event in MEETINGS}
        is_forged = False
        for answer in answers:
            event, place_of = answer["event"], answer.get("place")
            if event in by_event and isinstance(place_of, int):
                is_forged = is_forged or place_of in by_event[event]
                by_event[event][place_of] = answer
            if event in MEETINGS:
                moment = next(meetings, NO_MOMENT)
                if isinstance(place_of, int):
                    met[event][place_of] = moment
        samples = []
        for at in range(len(asked)):
            sample = read_sample(by_event["sample"].get(at, lost))
            if at in met["begin"] and at in met["finish"]:
                began, finished = met["begin"][at], met["finish"][at]
                sample.update(wall=finished.clock - began.clock, cpu=finished.cpu - began.cpu)
            is_forged = is_forged or (bool(asked[at]["once"]) and sample["outcome"] == "timed" and sample["calls"] != 1)
            samples.append(sample)
        # of a single call only what it says is its time: in place of one, anything could be done
        timed = [
            min(sample.get("cpu", 0.0), sample["value"] if each["once"] else math.inf)
            for each, sample in zip(asked, samples)
        ]
        prepared = done.cpu - sum(timed)
        peak = max((samples[at]["value"] for at in peaks), default=0.0)
        return TimedProcess(samples, prepared, done.cpu, is_forged, done.memory / peak if peak else 0.0, passed)

    def tests(self, place: Place, folder: str, names: list[str], seconds: float) -> EndedTests:
        """Run the tests *names* in the checkout *folder*."""
        root = f"{folder}/{self._task['package_root']}".rstrip("/")
        request: dict[str, Any] = {
            "watched": {},
            "words": [],
            "command": "test",
            "repository": folder,
            "folder": root,
            "packages": self._task["packages"],
            "ignored": [f"{folder}/{self._task['benchmark_dir']}"],
            "tests": "/opt/formulacode/tests",
            "named": names,
            "most": 10_000,
            "limit": self._task["test_seconds"],
            "budget": seconds,
            "mutation": None,
            "tools": True,
            "turn": 0,
            "enough": 0,
            "least": 0.0,
        }
        ended: dict[str, str] = {}
        tools: dict[str, str] = {}
        asked, deadline = frozenset(names), time.monotonic() + seconds + START_SECONDS
        # each process but the last has one more test that ended it
        for _ in range(len(names) + 1):
            request["without"] = [*ended]
            answers, _ = self._ask(place, request, deadline - time.monotonic(), self._setting)
            for answer in answers:
                if answer["event"] == "test":
                    # the first one is pytest's: a later one of that name is forged
                    ended.setdefault(str(answer.get("name")), str(answer.get("outcome")))
                elif answer["event"] == "tools" and isinstance(answer.get("codes"), dict):
                    tools.update(answer["codes"])
            started = [str(answer.get("name")) for answer in answers if answer["event"] == "started"]
            is_over = (answers and answers[-1]["event"] == "end") or time.monotonic() > deadline
            if is_over or not started or started[-1] in ended or started[-1] not in asked:
                break
            ended[started[-1]] = "crash"
        return EndedTests(ended, tools)

    def keep(self, place: Place) -> dict[str, str]:
        """Folder and hash of the shared objects that are installed; `` without any."""
        return self._kept(place, {"command": "keep"})

    def linkers(self, place: Place, code: int, data: int) -> str:
        """Return a folder of linkers that move code and data by that many bytes; `` if none can be made."""
        answers, _ = self._ask(place, {"command": "vary", "code": code, "data": data}, START_SECONDS, {}, build=True)
        return next((str(answer["folder"]) for answer in answers if answer["event"] == "linkers"), "")

    def relink(self, place: Place, linkers: str, code: int, data: int) -> dict[str, str]:
        """As `keep`, of what *linkers* stored, linked again and moved; `` if that is impossible."""
        return self._kept(place, {"command": "relink", "linkers": linkers, "code": code, "data": data})

    def _kept(self, place: Place, request: dict[str, Any]) -> dict[str, str]:
        answers, _ = self._ask(place, request, float(self._task["limits"]["build_seconds"]), {}, build=True)
        return next((answer for answer in answers if answer["event"] == "kept"), {"folder": "", "objects": ""})

    def _where(self, place: Place) -> dict[str, str]:
        root = os.path.normpath(f"{place.repository}/{self._task['benchmark_dir']}")
        return {"root": root, "checkout": place.repository, "tests": "/opt/formulacode/tests"}

    def _ask(
        self,
        place: Place,
        request: dict[str, Any],
        timeout: float,
        environment: dict[str, str],
        *,
        build: bool = False,
        meets: bool = False,
        watches_memory: bool = False,
    ) -> tuple[list[dict[str, Any]], Done]:
        nonce = secrets.token_hex(16)
        prefix = f"{nonce} ".encode()

        def read(line: bytes) -> dict[str, Any]:
            """Return the answer in *line*; without content if it is none, or cut as a process was killed."""
            with contextlib.suppress(ValueError, RecursionError):
                answer = json.loads(line[len(prefix) :]) if line.startswith(prefix) else None
                if isinstance(answer, dict) and isinstance(answer.get("event"), str):
                    return answer
            return {}

        with self.working_on(place.arm):
            done = place.run(
                [place.python, self._archive],
                timeout=timeout,
                environment={**self._environment, **environment},
                stdin=json.dumps({**request, "nonce": nonce}).encode(),
                build=build,
                is_meeting=(lambda line: read(line).get("event") in MEETINGS) if meets else None,
                watches_memory=watches_memory,
            )
        return [answer for answer in map(read, done.stdout.split(b"\n")) if answer], done


def _ended(done: Done) -> str:
    tail = done.stderr.decode(errors="replace")[-TAIL_CHARACTERS:]
    return f"ended with status {done.rc}{', out of time' if done.timed_out else ''}: {tail}"
