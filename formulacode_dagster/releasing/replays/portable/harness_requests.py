"""Asking the harness in a place, as the platform's `suites.remote` does."""

from __future__ import annotations

import json
import os
import secrets
from typing import TYPE_CHECKING, Any

from .sessions import HARNESS, PYTHON, REPOSITORY, TOOLS, EndedCommand, SessionPlace

if TYPE_CHECKING:
    from collections.abc import Sequence

ARCHIVE = f"{HARNESS}/fc_harness.pyz"
PADDING_STEPS = 4096
START_SECONDS = 20.0
GRACE_SECONDS = 2.0
FILE_SECONDS = 120.0
RELINK_SECONDS = 900.0
MAX_LOST_MODULES = 20
COUNTS = "callgrind.counts"
"""Beginning of the names of callgrind's files, as in the tool's options."""
CALLED = ("name", "module", "owner", "attribute", "index", "cache_folder")


class TaskFailedError(Exception):
    """A task cannot be replayed here; *kind* is the platform's."""

    def __init__(self, kind: str, message: str, log: str = "") -> None:
        super().__init__(message)
        self.kind, self.log = kind, log


class PackedAnswer:
    """Samples of one process, in the order of the request, with the load of the machine meanwhile."""

    def __init__(self, done: EndedCommand, answers: list[dict[str, Any]], count: int) -> None:
        kind = "timeout" if done.timed_out else "no_result" if done.rc == 0 else "crash"
        lost = {"outcome": kind, "message": done.describe(), "wall": 0.0}
        found = {int(answer["place"]): answer for answer in answers if answer["event"] == "sample"}
        self.samples: list[dict[str, Any]] = [found.get(place, lost) for place in range(count)]
        told = [answer for answer in answers if answer["event"] == "conditions"]
        self.conditions: dict[str, Any] | None = told[-1] if told else None
        self.seconds = done.seconds


class PackedHarness:
    """The harness in one place."""

    def __init__(self, place: SessionPlace, task: dict[str, Any]) -> None:
        self.place, self._task = place, task
        self._environment: dict[str, str] = {**task["environment"], "PYTHONPATH": f"{TOOLS}/instrument"}
        root = os.path.normpath(f"{REPOSITORY}/{task['benchmark_dir']}")
        self._where = {"root": root, "checkout": REPOSITORY, "tests": f"{TOOLS}/tests"}
        self._limit = float(task["limits"]["benchmark_seconds"])
        self._is_laid = False

    def lay_suite(self) -> None:
        """Copy the task's suite into the checkout, if it is not the checkout's own."""
        if self._task["files"] is not None:
            self._ended(
                {
                    "command": "write",
                    "repository": REPOSITORY,
                    "folder": self._task["benchmark_dir"],
                    "files": self._task["files"],
                },
                FILE_SECONDS,
                "copying the suite into the checkout",
            )
            self._is_laid = True

    def remove_suite(self) -> None:
        """Restore the checkout."""
        if self._is_laid:
            self._ended({"command": "restore", "repository": REPOSITORY}, FILE_SECONDS, "restoring the checkout")
            self._is_laid = False

    def survey(
        self, names: list[str], budget: float, *, results: bool = False, hash_seed: int | None = None
    ) -> dict[str, dict[str, Any]]:
        """Run each of *names* once; return the answers by name. The hash seed is random unless it is given."""
        lost: list[str] = []
        while True:
            request: dict[str, Any] = {
                **self._where,
                "command": "survey",
                "only": sorted(names),
                "lines": {},
                "compiled": {},
                "names": [],
                "ruled_out": [],
                "skip": sorted(lost),
                "enough": None,
                "coverage": "",
                "results": results,
                "limit": self._limit,
                "import_limit": self._limit,
                "budget": budget,
            }
            given = {} if hash_seed is None else {"PYTHONHASHSEED": str(hash_seed)}
            setting = {**random_setting(), **given}
            done, answers = self._ask(request, budget + 2 * self._limit + START_SECONDS, setting)
            if answers and answers[-1]["event"] == "importing" and len(lost) < MAX_LOST_MODULES:
                lost.append(str(answers[-1]["name"]))
                continue
            _require_end(done, answers, "surveying the suite")
            found = [answer for answer in answers if answer.pop("event") == "benchmark"]
            return {str(answer["name"]): answer for answer in found}

    def time(self, asked: list[dict[str, Any]], setting: dict[str, Any], abreast: int = 1) -> PackedAnswer:
        """Time each benchmark *asked* in one fresh process of this *setting*, one of so many that share a core."""
        request = {
            **self._where,
            "command": "time",
            **{name: setting[name] for name in ("seconds", "core", "padding", "build")},
            "benchmarks": [{**each, "timeout": each["timeout"] * abreast} for each in asked],
        }
        longest = abreast * (sum(each["timeout"] for each in asked) + START_SECONDS)
        environment = {"PYTHONHASHSEED": str(setting["hash_seed"]), "FC_PADDING": "." * setting["padding"]}
        done, answers = self._ask(request, longest, environment)
        return PackedAnswer(done, answers, len(asked))

    def idlest_core(self) -> int:
        """The core that others use least, counted from the last."""
        answers = self._ended({"command": "idlest", "taken": []}, FILE_SECONDS, "choosing a core")
        return next(int(answer["number"]) for answer in answers if answer["event"] == "core")

    def linkers(self, code: int, data: int, name: str) -> str:
        """Folder called *name* of linkers that move code and data by so many bytes; empty if none can be made."""
        request = {"command": "vary", "code": code, "data": data, "name": name}
        answers = self._ended(request, FILE_SECONDS, "making linkers")
        return next(str(answer["folder"]) for answer in answers if answer["event"] == "linkers")

    def keep_build(self) -> dict[str, str]:
        """Keep the installed shared objects: `folder`, and `objects`, a hash over them."""
        answers = self._ended({"command": "keep"}, FILE_SECONDS, "keeping a build")
        return next(answer for answer in answers if answer["event"] == "kept")

    def relink(self, linkers: str, code: int, data: int) -> dict[str, str] | None:
        """Link again what *linkers* stored, moved; None if that does not reproduce the installed objects."""
        request = {"command": "relink", "linkers": linkers, "code": code, "data": data}
        answers = self._ended(request, RELINK_SECONDS, "linking again")
        return next((answer for answer in answers if answer["event"] == "kept"), None)

    def build(self, linkers: str = "") -> EndedCommand:
        """Build and install the package; the suite is out of the checkout meanwhile."""
        was_laid = self._is_laid
        self.remove_suite()
        environment = {"FC_KEEPS_COMPILED": "1", **({"COMPILER_PATH": linkers} if linkers else {})}
        done = self.place.reinstall(timeout=self._task["limits"]["build_seconds"], environment=environment)
        if was_laid:
            self.lay_suite()
        return done

    def count(self, surveyed: list[dict[str, Any]], counting: dict[str, Any], budget: float) -> dict[str, int | str]:
        """Instructions of one call of each benchmark, after a first one, or why they were not counted, by name."""
        fields = (*CALLED, "timeout", "isolate")
        request = {
            **self._where,
            "command": "count",
            "budget": budget,
            "counts": COUNTS,
            "benchmarks": [{key: each[key] for key in fields if key in each} for each in surveyed],
        }
        environment = {**counting["environment"], "PYTHONHASHSEED": "0", "FC_PADDING": ""}
        done, answers = self._ask(request, budget + GRACE_SECONDS, environment, counting["argv"])
        why = "no time" if answers or done.timed_out else done.describe()
        told: dict[str, int | str] = dict.fromkeys((str(each["name"]) for each in surveyed), why)
        for answer in answers:
            if answer["event"] == "count":
                told[answer["benchmark"]] = answer.get("instructions") or str(answer["outcome"])
        return told

    def _ended(self, request: dict[str, Any], timeout: float, what: str) -> list[dict[str, Any]]:
        done, answers = self._ask(request, timeout, random_setting())
        _require_end(done, answers, what)
        return answers

    def _ask(
        self, request: dict[str, Any], timeout: float, environment: dict[str, str], under: Sequence[str] = ()
    ) -> tuple[EndedCommand, list[dict[str, Any]]]:
        # a benchmark cannot forge an answer that is signed with a fresh nonce
        nonce = secrets.token_hex(16)
        done = self.place.run(
            [*under, PYTHON, ARCHIVE],
            timeout=timeout,
            environment={**self._environment, **environment},
            stdin=json.dumps({**request, "nonce": nonce}).encode(),
        )
        prefix, answers = f"{nonce} ".encode(), []
        for line in done.stdout.split(b"\n"):
            if line.startswith(prefix):
                try:
                    answer = json.loads(line[len(prefix) :])
                except (ValueError, RecursionError):
                    continue
                if isinstance(answer, dict) and "event" in answer:
                    answers.append(answer)
        return done, answers


def random_setting() -> dict[str, str]:
    """Variables with a random hash seed and start of the stack."""
    return {"PYTHONHASHSEED": str(random_hash_seed()), "FC_PADDING": "." * secrets.randbelow(PADDING_STEPS)}


def random_hash_seed() -> int:
    """Return one with which Python randomizes hashes."""
    return secrets.randbelow(2**32 - 1) + 1


def _require_end(done: EndedCommand, answers: list[dict[str, Any]], what: str) -> None:
    if done.timed_out:
        raise TaskFailedError("timeout", f"{what} took too long", done.describe())
    if not answers or answers[-1]["event"] != "end":
        raise TaskFailedError("benchmarks_fail", f"{what} broke off", done.describe())
