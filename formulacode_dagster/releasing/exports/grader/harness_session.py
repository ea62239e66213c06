"""Asking the harness of `suites/` in an arm; the platform's own `suites.remote` asks the same."""

from __future__ import annotations

import json
import secrets
from typing import Any

from .places import Place

START_SECONDS = 20.0
TAIL_CHARACTERS = 2000


class Harness:
    """The harness, as it runs in the arms of one task."""

    def __init__(self, archive: str, task: dict[str, Any]) -> None:
        self._archive, self._task = archive, task
        instrument = {"PYTHONPATH": "/opt/formulacode/instrument"}
        self._environment: dict[str, str] = {**instrument, **task["environment"]}
        self._limit = float(task["limits"]["benchmark_seconds"])

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
        }
        longest = self._task["survey_seconds"] + 2 * self._limit + START_SECONDS
        answers, _, ended = self._ask(place, request, longest, {"PYTHONHASHSEED": "1"})
        return {answer["name"]: answer for answer in answers if answer["event"] == "benchmark"}, ended

    def time(
        self, place: Place, asked: list[dict[str, Any]], setting: dict[str, Any]
    ) -> tuple[list[dict[str, Any]], float, float]:
        """An answer for each benchmark *asked*, of one fresh process; CPU seconds of importing them, and of it all."""
        request = {**self._where(place), "command": "time", "benchmarks": asked, **setting["request"]}
        longest = sum(float(each["timeout"]) for each in asked) + START_SECONDS
        answers, cpu, ended = self._ask(place, request, longest, setting["environment"])
        lost = {"outcome": "crash", "message": ended}
        by_place = {answer["place"]: answer for answer in answers if answer["event"] == "sample"}
        imported = sum(float(answer["seconds"]) for answer in answers if answer["event"] == "loaded")
        return [by_place.get(at, lost) for at in range(len(asked))], imported, cpu

    def tests(self, place: Place, folder: str, names: list[str], seconds: float) -> dict[str, str]:
        """Return how each of the tests *names* ended in the checkout *folder*; one that did not end has no entry."""
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
            "turn": 0,
            "enough": 0,
            "least": 0.0,
        }
        ended: dict[str, str] = {}
        while True:
            request["without"] = [*ended]
            answers, _, _ = self._ask(place, request, seconds + START_SECONDS, {"PYTHONHASHSEED": "1"})
            ended.update({answer["name"]: answer["outcome"] for answer in answers if answer["event"] == "test"})
            started = [answer["name"] for answer in answers if answer["event"] == "started"]
            if not started or (answers and answers[-1]["event"] == "end") or started[-1] in ended:
                return ended
            ended[started[-1]] = "crash"

    def keep(self, place: Place) -> dict[str, str]:
        """Folder and hash of the shared objects that are installed; `` without any."""
        return self._kept(place, {"command": "keep"})

    def linkers(self, place: Place, code: int, data: int) -> str:
        """Return a folder of linkers that move code and data by that many bytes; `` if none can be made."""
        answers, _, _ = self._ask(place, {"command": "vary", "code": code, "data": data}, START_SECONDS, {}, build=True)
        return next((str(answer["folder"]) for answer in answers if answer["event"] == "linkers"), "")

    def relink(self, place: Place, linkers: str, code: int, data: int) -> dict[str, str]:
        """As `keep`, of what *linkers* stored, linked again and moved; `` if that is impossible."""
        return self._kept(place, {"command": "relink", "linkers": linkers, "code": code, "data": data})

    def _kept(self, place: Place, request: dict[str, Any]) -> dict[str, str]:
        answers, _, _ = self._ask(place, request, float(self._task["limits"]["build_seconds"]), {}, build=True)
        return next((answer for answer in answers if answer["event"] == "kept"), {"folder": "", "objects": ""})

    def _where(self, place: Place) -> dict[str, str]:
        root = f"{place.repository}/{self._task['benchmark_dir']}".rstrip("/")
        return {"root": root, "checkout": place.repository, "tests": "/opt/formulacode/tests"}

    def _ask(
        self,
        place: Place,
        request: dict[str, Any],
        timeout: float,
        environment: dict[str, str],
        *,
        build: bool = False,
    ) -> tuple[list[dict[str, Any]], float, str]:
        nonce = secrets.token_hex(16)
        done = place.run(
            [place.python, self._archive],
            timeout=timeout,
            environment={**self._environment, **environment},
            stdin=json.dumps({**request, "nonce": nonce}).encode(),
            build=build,
        )
        prefix = f"{nonce} ".encode()
        answers = []
        for line in done.stdout.split(b"\n"):
            if line.startswith(prefix):
                try:
                    answers.append(json.loads(line[len(prefix) :]))
                except ValueError:
                    # the last line of a process that was killed may be cut
                    break
        tail = done.stderr.decode(errors="replace")[-TAIL_CHARACTERS:]
        return answers, done.cpu, f"ended with status {done.rc}{', out of time' if done.timed_out else ''}: {tail}"
