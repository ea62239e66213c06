"""Samples of one task: the rounds of the platform's `measurement.sampling`, without a look at them.

Judging is left to the platform, which uses the rounds up to the first interim analysis that decides: here all are
taken, up to the last one or to the end of the time.
"""

from __future__ import annotations

import random
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from .arms import ARMS, ORACLE, PackedArms
from .harness_requests import CALLED, PADDING_STEPS, PackedAnswer, TaskFailedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

PATIENCE = 3
"""Times the plan's seconds, as for any replay."""
LEAST_ROUNDS = 2
TIMING_FACTOR = 2.0
LEAST_SECONDS = 0.005
SURVEY_SHARE = 0.25
TRIES = 2
UNBUILT = ("oracle_does_not_build", "base_does_not_build", "timeout")
BLAMELESS = ("skipped", "no_ratio")

Surveys = dict[str, dict[str, dict[str, Any]]]


class Process(NamedTuple):
    """One interpreter of a round."""

    arm: str
    folder: str
    objects: str


class ReplayBudget:
    """Seconds for surveys and samples; builds are not counted."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.elsewhere = seconds, 0.0
        self._start = time.monotonic()

    @property
    def spent(self) -> float:
        """Seconds used up."""
        return time.monotonic() - self._start - self.elsewhere

    @property
    def left(self) -> float:
        """Seconds that are left, at least 0."""
        return max(0.0, self.seconds - self.spent)


class RoundSampler:
    """Takes the samples of one task."""

    def __init__(
        self,
        arms: PackedArms,
        task: dict[str, Any],
        surveys: Surveys,
        budget: ReplayBudget,
        seed: int,
        core: int,
        note: Callable[[str], object],
    ) -> None:
        self._arms, self._task, self._plan, self._rule = arms, task, task["plan"], task["rule"]
        self._surveys, self._budget, self._core, self._note = surveys, budget, core, note
        self._generator, self._layouts = random.Random(seed), random.Random(seed)  # noqa: S311 - an order
        self._benchmarks: list[str] = list(task["benchmarks"])
        self._seconds: float = self._plan["seconds_per_sample"]
        self._repeats: int = self._plan["max_repeats"]
        self._single: frozenset[str] = frozenset()
        self._is_abreast = False
        self._by_build = self._rule["unit"] == "build"
        self._round_seconds = 0.0
        self.rounds = self.processes = 0
        self.samples: dict[str, list[dict[str, Any]]] = {name: [] for name in self._benchmarks}
        self.conditions: list[dict[str, Any]] = []
        self.machine = ""
        self.cut_short = ""
        """Why the last rounds are missing; empty if they are not."""

    def take(self) -> None:
        """Warm up, then take the rounds; raises TaskFailedError."""
        self._warm_up()
        most = self._rule["looks"][-1]["units"]
        while self.rounds < most:
            if self.rounds >= LEAST_ROUNDS and not self._has_time():
                self.cut_short = (
                    f"a round took {self._round_seconds:.0f} s, and all may take {self._budget.seconds:g} s"
                )
                self._note("the time is used up")
                return
            self._note(f"round {self.rounds + 1} of {most}")
            try:
                processes = [self._process(arm) for arm in ARMS]
            except TaskFailedError as failure:
                if failure.kind not in UNBUILT or self.rounds < LEAST_ROUNDS:
                    raise
                self.cut_short = f"no more could be built: {failure.kind}"
                return
            self._round(processes)

    def _has_time(self) -> bool:
        has_builds = self._arms.built_seconds < self._plan["max_build_seconds"]
        return self._budget.left >= self._round_seconds and has_builds

    def _process(self, arm: str) -> Process:
        if not self._by_build:
            return Process(arm, "", "")
        started = time.monotonic()
        kept = self._arms.build_anew(arm, self._layouts)
        self._budget.elsewhere += time.monotonic() - started
        return Process(arm, kept["folder"], kept["objects"])

    def _warm_up(self) -> None:
        """Call everything once on every arm; the cost of a round decides how long each is timed."""
        self._note(f"warming up {len(self._benchmarks)} benchmarks")
        calls, overhead = dict.fromkeys(self._benchmarks, 0.0), 0.0
        taken: dict[Process, dict[str, dict[str, Any]]] = {}
        setting = self._setting(0, 0)
        for process in [Process(arm, "", "") for arm in ARMS]:
            answer = self._run(process, self._benchmarks, setting, once=True)
            taken[process] = dict(zip(self._benchmarks, answer.samples))
            for name, sample in taken[process].items():
                calls[name] = max(calls[name], float(sample.get("wall", 0.0)))
            overhead = max(overhead, answer.seconds - sum(float(each.get("wall", 0.0)) for each in answer.samples))
        self._mend(taken, setting, once=True)
        waits = any(sample["waited"] for samples in taken.values() for sample in samples.values())
        self._is_abreast = bool(self._plan["at_once"]) and not waits
        self._single = frozenset(
            name for name in self._benchmarks if self._is_single(name, [samples[name] for samples in taken.values()])
        )
        self._seconds = self._fitted(calls, overhead)

    def _fitted(self, calls: dict[str, float], overhead: float) -> float:
        """Seconds to time each benchmark for in one process; raises TaskFailedError unless there is time for all."""
        first = next(look["units"] for look in self._rule["looks"] if look["alpha"])
        processes = first * len(ARMS)
        batched = [name for name in self._benchmarks if name not in self._single]
        least = sum(calls.values()) + TIMING_FACTOR * LEAST_SECONDS * len(batched)
        if least > self._budget.left / processes - overhead and len(self._benchmarks) > 1:
            raise TaskFailedError("workload_differs", "there is no time here for all of the row's benchmarks")
        room = min(self._budget.left, self._plan["max_seconds"]) / processes - overhead - sum(calls.values())
        each = max(LEAST_SECONDS, room / (TIMING_FACTOR * max(1, len(batched))))
        return float(min(self._plan["seconds_per_sample"], each))

    def _round(self, processes: Sequence[Process]) -> None:
        """One sample of every benchmark in every process; a disturbed round is taken again."""
        while True:
            started = self._budget.spent
            setting = self._setting(self._generator.randrange(1, 2**32), self._generator.randrange(PADDING_STEPS))
            order = self._generator.sample(list(processes), len(processes))
            names = self._generator.sample(self._benchmarks, len(self._benchmarks))
            groups = [order] if self._is_abreast else [[process] for process in order]
            answers = {process: answer for group in groups for process, answer in self._abreast(group, names, setting)}
            conditions = self._conditions_of([[answers[process] for process in group] for group in groups])
            self.conditions.append(conditions)
            if not conditions["disturbed"]:
                break
            self._repeats -= 1
            self._note("disturbed by others on this core: once more")
        taken = {process: dict(zip(names, answer.samples)) for process, answer in answers.items()}
        self._mend(taken, setting)
        for place, process in enumerate(order):
            for name, sample in taken[process].items():
                self.samples[name].append(
                    {
                        "arm": process.arm,
                        "build": self.rounds if self._by_build else 0,
                        "objects": process.objects,
                        "round": self.rounds,
                        "order": place,
                        "process": self.processes + place,
                        "hash_seed": setting["hash_seed"],
                        "value": sample["value"],
                        "calls": sample["calls"],
                    }
                )
        self.processes += len(order)
        self.rounds += 1
        self._round_seconds = max(self._round_seconds, self._budget.spent - started)

    def _setting(self, hash_seed: int, padding: int) -> dict[str, Any]:
        return {"hash_seed": hash_seed, "padding": padding, "core": self._core}

    def _is_single(self, name: str, warm_up: Sequence[dict[str, Any]]) -> bool:
        """Return True if one call in a process must do, by the values of the *warm_up*."""
        is_time = self._surveys[ARMS[0]][name].get("metric", "time") == "time"
        longest = max(float(sample["value"]) for sample in warm_up)
        return not is_time or longest > float(self._plan["single_call_seconds"])

    def _run(
        self, process: Process, names: Sequence[str], setting: dict[str, Any], *, once: bool = False, abreast: int = 1
    ) -> PackedAnswer:
        asked = []
        for name in names:
            surveyed, of_arms = self._surveys[process.arm][name], [self._surveys[arm][name] for arm in ARMS]
            asked.append(
                {
                    **{key: surveyed[key] for key in (*CALLED, "timeout")},
                    "isolate": any(each.get("isolate", False) for each in of_arms),
                    "setup_seconds": max(each.get("setup_seconds", 0.0) for each in of_arms),
                    "once": once or name in self._single,
                }
            )
        request = {**setting, "seconds": self._seconds, "build": process.folder}
        return self._arms.by_name[process.arm].time(asked, request, abreast)

    def _abreast(
        self, group: Sequence[Process], names: Sequence[str], setting: dict[str, Any]
    ) -> list[tuple[Process, PackedAnswer]]:
        """Run them at the same time on one core, so that all meet its slow moments."""
        with ThreadPoolExecutor(len(group)) as pool:
            answers = pool.map(lambda process: self._run(process, names, setting, abreast=len(group)), group)
            return list(zip(group, answers))

    def _conditions_of(self, groups: Sequence[Sequence[PackedAnswer]]) -> dict[str, Any]:
        """The worst interference of a round, without that of siblings on the core."""
        told: list[dict[str, Any]] = []
        for group in groups:
            known = [answer.conditions for answer in group if answer.conditions is not None]
            own = sum(float(each["own"]) for each in known)
            told += [{**each, "others": max(0.0, each["others"] - (own - each["own"]))} for each in known]
        steal, others = (max((float(each[name]) for each in told), default=0.0) for name in ("steal", "others"))
        for each in told:
            if self.machine not in ("", each["machine"]):
                why = f"its arms were timed on different machines: {self.machine}; {each['machine']}"
                raise TaskFailedError("several_machines", why)
            self.machine = str(each["machine"])
        is_over = steal > self._plan["max_steal"] or others > self._plan["max_others"]
        return {
            "round": self.rounds,
            "load": max((float(each["load"]) for each in told), default=0.0),
            "steal": steal,
            "others": others,
            "mhz": min((float(each["mhz"]) for each in told), default=0.0),
            "disturbed": self._repeats > 0 and is_over,
        }

    def _mend(
        self, taken: dict[Process, dict[str, dict[str, Any]]], setting: dict[str, Any], *, once: bool = False
    ) -> None:
        """Time what failed on any arm once more on each; raises TaskFailedError if it fails again."""
        failed = sorted({name for samples in taken.values() for name, each in samples.items() if _is_lost(each)})
        for name in failed:
            first = {process.arm for process, samples in taken.items() if _is_lost(samples[name])}
            self._note(f"{name} failed on {', '.join(sorted(first))}: once more on every arm")
            again = {process: self._run(process, [name], setting, once=once).samples[0] for process in taken}
            second = {process.arm: sample for process, sample in again.items() if _is_lost(sample)}
            for process, sample in again.items():
                taken[process][name] = sample
            if second:
                arm, why = next(iter(second.items()))
                is_oracles = first == set(second) == {ORACLE} and why["outcome"] not in BLAMELESS
                kind = "oracle_breaks_benchmarks" if is_oracles else "workload_differs"
                what = f"{name} cannot be timed here: {why['outcome']} on the {arm}"
                raise TaskFailedError(kind, what, str(why.get("message", "")))


def survey(arms: PackedArms, task: dict[str, Any], budget: ReplayBudget, note: Callable[[str], object]) -> Surveys:
    """Run each benchmark once on every arm, twice if it fails; raises TaskFailedError unless all run on all."""
    found: Surveys = {arm: {} for arm in ARMS}
    for arm in ARMS:
        for _ in range(TRIES):
            ran = {name for name, answer in found[arm].items() if answer["outcome"] == "ran"}
            if missing := [name for name in task["benchmarks"] if name not in ran]:
                note(f"running {len(missing)} benchmarks once on the {arm}")
                seconds = min(float(task["plan"]["max_survey_seconds"]), SURVEY_SHARE * budget.left)
                found[arm].update(arms.by_name[arm].survey(missing, seconds))
    failures = [
        (name, arm, found[arm].get(name, {"outcome": "missing", "message": "not defined on this arm"}))
        for name in task["benchmarks"]
        for arm in ARMS
        if found[arm].get(name, {}).get("outcome") != "ran"
    ]
    if failures:
        kind = "oracle_breaks_benchmarks" if {arm for _, arm, _ in failures} == {ORACLE} else "workload_differs"
        told = "; ".join(f"{name}: {answer['outcome']} on the {arm}" for name, arm, answer in failures[:5])
        log = "\n".join(f"{name}: {answer.get('message', '')}" for name, _, answer in failures[:5])
        raise TaskFailedError(kind, f"some of the row's benchmarks do not run here: {told}", log)
    return found


def _is_lost(sample: dict[str, Any]) -> bool:
    return bool(sample["outcome"] != "timed")
