"""Takes samples: rounds of fresh processes, one arm after the other, since parallel ones could disturb each other."""

from __future__ import annotations

import math
import random
import time
from typing import Any

from . import places, preparing
from .equality import ComparedValues
from .harness_session import PADDING_STEPS, Harness, TimedProcess
from .judging import ArmVerdict, Samples, StoredRule, judge
from .places import AGENT, ARMS, Place

ALIGNMENT, CODE_STEPS, DATA_STEPS = 16, 1024, 64
TRIES = 2


class BenchmarksFailError(Exception):
    """A benchmark gives no sample on *arm*."""

    def __init__(self, arm: str, message: str) -> None:
        super().__init__(f"{arm}: {message}")
        self.arm = arm


class BuildFailsError(Exception):
    """A later build of *arm* fails."""

    def __init__(self, arm: str, message: str) -> None:
        super().__init__(message)
        self.arm = arm


class Clocked:
    """Seconds of the batches of one arm, with their setups, by different clocks."""

    def __init__(self) -> None:
        self.wall = self.accounted = 0.0
        """By the clock of this process, and by that of the timed ones."""
        self.cpu = self.counted = self.setups = 0.0
        """As the kernel counts all of it, and as calls and setups say."""
        self.batches = 0.0
        self.spread = 0.0
        """The greatest ratio of the mean call of a sample and what it is said to be."""
        self.unmet = 0
        """Samples without a clock outside."""

    def add(self, answer: dict[str, Any]) -> None:
        """Add a sample, if it is one of calls."""
        if not answer["is_clocked"]:
            return
        if "wall" not in answer:
            self.unmet += 1
            return
        self.wall, self.accounted = self.wall + answer["wall"], self.accounted + answer["accounted"]
        self.cpu, self.counted = self.cpu + answer["cpu"], self.counted + answer["counted"]
        self.setups, self.batches = self.setups + answer["setups"], self.batches + answer["batches"]
        self.spread = max(self.spread, answer["measured"] / (answer["calls"] * answer["value"] or math.inf))

    @property
    def setup(self) -> float:
        """CPU seconds of a setup."""
        return self.setups / (self.batches or math.inf)


class Preparations:
    """CPU seconds of processes outside their batches, and the paces of their core."""

    def __init__(self) -> None:
        self._seconds: dict[str, list[float]] = {arm: [] for arm in ARMS}
        self._paces: dict[str, list[float]] = {arm: [] for arm in ARMS}

    def add(self, arm: str, process: TimedProcess) -> None:
        """Add a process of *arm*."""
        self._seconds[arm].append(process.prepared)
        self._paces[arm].append(process.pace)

    def at_one_pace(self) -> dict[str, list[float]]:
        """Return the seconds by arm, as `preparing.at_one_pace` does."""
        return preparing.at_one_pace(self._seconds, self._paces)


class ArmSampler:
    """Samples of the arms of one task."""

    def __init__(
        self,
        task: dict[str, Any],
        harness: Harness,
        arms: dict[str, Place],
        surveyed: dict[str, dict[str, dict[str, Any]]],
        linkers: dict[str, str],
        consumed: frozenset[str] = frozenset(),
    ) -> None:
        """*surveyed* is each benchmark's result on each arm; *linkers* are those that each arm was built with.

        Values of the benchmarks *consumed* are read within the clock, on all arms.
        """
        self._consumed = consumed
        self._task, self._harness, self._arms, self._surveyed = task, harness, arms, surveyed
        self._rule, self._linkers = StoredRule(task["rule"]), linkers
        # not the platform's seed: chances are not to be met twice, nor to be known before
        self._generator = random.SystemRandom()
        names = task["benchmarks"]
        self.samples = Samples({arm: {name: [] for name in names} for arm in ARMS}, {arm: [] for arm in ARMS})
        self.spent: dict[str, list[float]] = {arm: [] for arm in ARMS}
        """CPU seconds of each process, as the kernel counted them."""
        self.first_calls: dict[str, dict[str, list[float]]] = {arm: {name: [] for name in names} for arm in ARMS}
        self._prepared, self._prepared_once = Preparations(), Preparations()
        self.clocked = {arm: Clocked() for arm in ARMS}
        """Seconds of all batches by clocks inside and outside."""
        self.memory: dict[str, list[float]] = {arm: [] for arm in ARMS}
        """Most memory of each process that it was seen to occupy, as a multiple of the peak that it says."""
        self.tampered: dict[str, set[str]] = {arm: set() for arm in ARMS}
        """Names of clocks that were replaced."""
        self.differing: dict[str, list[str]] = {name: [] for name in names}
        """Parts of each benchmark's values that differed from the base's, one for each process."""
        self.proven = dict.fromkeys(names, 0)
        """Processes in which a benchmark computed a value that can be compared."""

    @property
    def prepared(self) -> dict[str, list[float]]:
        """CPU seconds of each process outside its batches, by arm."""
        return self._prepared.at_one_pace()

    @property
    def prepared_once(self) -> dict[str, list[float]]:
        """The same of the processes behind `first_calls`, which know that a single call is timed."""
        return self._prepared_once.at_one_pace()

    @property
    def saved(self) -> float:
        """Seconds that the agent's first calls are shorter than the base's: the least of each, as load only adds."""
        called = {arm: math.fsum(map(min, self.first_calls[arm].values())) for arm in ("base", AGENT)}
        return called["base"] - called[AGENT]

    def take(self) -> ArmVerdict:
        """Rounds until the rule decides on the agent's arm, or the task's time is used up."""
        deadline = time.monotonic() + float(self._task["max_seconds"])
        rounds, longest = 0, 0.0
        for look, (units, _) in enumerate(self._rule.looks):
            while rounds < units:
                started = time.monotonic()
                if rounds >= 2 and started + longest > deadline:
                    return judge(self.samples, AGENT, self._rule, look)
                self._round()
                rounds += 1
                longest = max(longest, time.monotonic() - started)
            judged = judge(self.samples, AGENT, self._rule, look)
            if judged.is_decided:
                break
        return judged

    def judged(self, arm: str) -> ArmVerdict:
        """Judge the samples of another *arm*, at the least level of the rule: sampling did not wait for it."""
        claims = [place for place, (_, alpha) in enumerate(self._rule.looks) if alpha]
        return judge(self.samples, arm, self._rule, claims[0])

    def call_once(self, rounds: int) -> None:
        """Add *rounds* of processes in which each benchmark is called once, to `first_calls`."""
        for _ in range(rounds):
            self._processes(self.first_calls, once=True)

    def without_builds(self, rounds: int) -> None:
        """Add *rounds* of processes of the package as it is built, to `samples`."""
        for _ in range(rounds):
            self._processes(self.samples.values)

    def _round(self) -> None:
        if self._rule.by_build:
            for arm in ARMS:
                try:
                    self.samples.objects[arm].append(self._build_anew(arm))
                except places.UNBUILT as error:
                    raise BuildFailsError(arm, str(error)) from error
        self._processes(self.samples.values)

    def _processes(self, values: dict[str, dict[str, list[float]]], *, once: bool = False) -> None:
        """Time a process of each arm, in random order, and add to *values*."""
        setting = self._setting()
        answers = {}
        for arm in self._generator.sample(ARMS, len(ARMS)):
            process = self._timed(arm, setting, once=once)
            answers[arm] = process.samples
            if not once:
                self.spent[arm].append(process.cpu)
            for name, answer in zip(self._task["benchmarks"], process.samples):
                values[arm][name].append(answer["value"])
        self._compare(answers)

    def _compare(self, answers: dict[str, list[dict[str, Any]]]) -> None:
        """Compare the values of one call of each benchmark, which the timed process drew, on all arms."""
        for place, name in enumerate(self._task["benchmarks"]):
            proofs = {arm: answers[arm][place]["proof"] for arm in ARMS}
            compared = ComparedValues(proofs["base"], proofs["control"], proofs["oracle"])
            self.proven[name] += compared.is_proof
            self.differing[name] += compared.differing(proofs[AGENT])[:1]

    def _timed(self, arm: str, setting: dict[str, Any], *, once: bool = False) -> TimedProcess:
        asked = [self._asked(arm, name, once=once) for name in self._task["benchmarks"]]
        for _ in range(TRIES):
            process = self._harness.time(self._arms[arm], asked, setting)
            failed = [answer for answer in process.samples if answer["outcome"] != "timed"]
            self.tampered[arm].update(name for answer in process.samples for name in answer["tampered"])
            if process.is_forged:
                self.tampered[arm].add("answers")
            if not failed:
                (self._prepared_once if once else self._prepared).add(arm, process)
                self.memory[arm].append(process.memory)
                for answer in process.samples:
                    self.clocked[arm].add(answer)
                return process
        raise BenchmarksFailError(arm, f"{failed[0]['outcome']}: {failed[0]['message']}")

    def _asked(self, arm: str, name: str, *, once: bool) -> dict[str, Any]:
        """Return the benchmark as the harness times it; how its calls are batched is the same for all arms."""
        surveyed, of_arms = self._surveyed[arm][name], [self._surveyed[each][name] for each in ARMS]
        longest = max(float(each.get("seconds", 0.0)) for each in of_arms)
        return {
            **{key: surveyed[key] for key in ("name", "module", "owner", "attribute", "index", "cache_folder")},
            "timeout": surveyed["timeout"],
            "isolate": any(each.get("isolate", False) for each in of_arms),
            "setup_seconds": max(float(each.get("setup_seconds", 0.0)) for each in of_arms),
            "consume": name in self._consumed,
            "once": once or longest > self._task["single_call_seconds"],
        }

    def _setting(self) -> dict[str, Any]:
        padding = self._generator.randrange(PADDING_STEPS)
        kept, proofs = (self._generator.randrange(1, 2**62) for _ in range(2))
        request = {
            "seconds": self._task["seconds_per_sample"],
            "core": 0,
            "padding": padding,
            "build": "",
            "kept": kept,
            "proofs": proofs,
        }
        seed = str(self._generator.randrange(1, 2**32))
        return {"request": request, "environment": {"PYTHONHASHSEED": seed, "FC_PADDING": "." * padding}}

    def _build_anew(self, arm: str) -> str:
        """Give the arm's package another layout, as `measurement.arms` does; returns a hash of its objects."""
        place = self._arms[arm]
        code, data = (ALIGNMENT * self._generator.randrange(steps) for steps in (CODE_STEPS, DATA_STEPS))
        kept = {"folder": "", "objects": ""}
        if self._linkers.get(arm):
            kept = self._harness.relink(place, self._linkers[arm], code, data)
        if kept["objects"]:
            places.lay_build(place, kept["folder"])
            return kept["objects"]
        self._linkers[arm] = self._harness.linkers(place, code, data)
        places.install(place, self._task, with_linkers(self._linkers[arm]))
        return self._harness.keep(place)["objects"]


def with_linkers(folder: str) -> dict[str, str]:
    """Return variables that make a build use the linkers in *folder*, if there are any."""
    return {"COMPILER_PATH": folder} if folder else {}
