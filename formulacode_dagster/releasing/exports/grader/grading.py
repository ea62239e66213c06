"""One task graded: tests first, then base, control, the author's and the agent's code timed side by side."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import math
import os
import random
import shutil
import sys
import time
import traceback
from typing import TYPE_CHECKING, Any

from . import held_out, places, preparing
from .equality import ComparedValues
from .harness_session import EndedTests, Harness
from .judging import ArmVerdict, median, sign_flip_p
from .places import AGENT, ARMS, ArmFailedError, Place
from .running import ProcessesRemainError, adopt_orphans, cpu_of_children, empty_public, end_processes
from .sampling import ArmSampler, BenchmarksFailError, BuildFailsError, with_linkers
from .terminal_reports import BREAKS_GRADER, NOT_GRADABLE, TOLD

if TYPE_CHECKING:
    from collections.abc import Iterable

LEAST_SHARE = 0.5
"""Limits: the share of the author's gain in first calls that makes them count; the share of tests failing without a
change that makes grading impossible.
"""
PLAIN_GAIN = math.log(2)
"""Gain of the author's first calls that makes them count, whatever later ones gain."""
FIRST_CALL_NOISE = 1.1
"""First calls are few: a speed-up of theirs may be so many times smaller by chance."""
MOST_SABOTAGED = 3
"""Tests that are made to fail, to see that failures are reported."""
JUDGES = ("_pytest.", "pytest.", "pluggy.", "unittest.case.", "builtins.", "operator.", "math.", "warnings.")
"""Modules that every process with tests has; others, as numpy's, a faster package may import no longer."""
MOST_DIFFERING = 1
"""Processes in which the values of a call may differ from the base's: any code may meet a moment of chance."""
MOST_OUTSIDE, MOST_CPU_OUTSIDE, MOST_SETUP, MOST_SPREAD, MOST_MEMORY = 1.2, 1.2, 1.3, 3.0, 1.1
"""Limits, as multiples of what other arms have: of the time outside for the time that timed processes account for, of
the CPU time of a setup, of the mean call for the one that is said to be usual, and of the memory seen for its peak.
"""
LEAST_OUTSIDE_SECONDS, SHORT_SECONDS = 0.05, 20e-6
"""Time that need not be accounted for: of all batches together, and of each."""
MOST_CPU, MOST_BESIDE = 3.0, 0.2
"""Limit of a process's CPU time as a multiple of the other arms', for the same timed work."""
LEVEL = 0.01
"""Level at which preparing takes longer and first calls are faster, or the least one that so few rounds can reach."""
FIRST_CALL_ROUNDS, MOST_FIRST_CALL_ROUNDS, FIRST_CALL_SECONDS = 5, 30, 60.0
"""Rounds of first calls at a time and at most, and the seconds after which no more are begun."""
NO_PROCESS = ("Resource temporarily unavailable", "can't start new thread", "BlockingIOError")
"""Signs in the message of a process that may not start another."""
REPORTS = ("reward.json", "reward.txt", "report.json")


def main() -> None:
    """Grade the content of this container by the task next to the archive, and write the result."""
    here = os.path.dirname(os.path.abspath(sys.argv[0]))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--report", default="/logs/verifier", help="folder for reward.json and report.json")
    parser.add_argument("--diff", help="the agent's changes of the checkout, if it worked in another container")
    parser.add_argument("--tell", choices=sorted(TOLD), help="whose form to print what came of it in")
    parser.add_argument("--agent", default="", help="the agent's name, for those who want it told")
    options = parser.parse_args()
    # the files here are hidden from the agent's code, whoever owned them originally
    for name in os.listdir(here):
        os.chown(os.path.join(here, name), 0, 0)
        os.chmod(os.path.join(here, name), 0o700)
    # pytest looks for files in folders of this name, too
    os.chmod(here, 0o711)
    with open(os.path.join(here, "task.json")) as file:
        task = json.load(file)
    with open(os.path.join(here, "oracle.patch"), "rb") as file:
        patch = file.read()
    started = time.monotonic()
    _clear(options.report)
    try:
        report = Grading(task, patch, os.path.join(here, "harness.pyz"), options.diff).grade()
    except Exception as error:
        if not options.tell:
            raise
        # if printed output is read as the result, no message that the agent could have worded may be printed
        traceback.print_tb(error.__traceback__)
        sys.exit(f"the grader broke off: {type(error).__name__}")
    report["task_sha256"] = _sha256(os.path.join(here, "task.json"))
    report["grader_sha256"] = _sha256(os.path.abspath(sys.argv[0]), os.path.join(here, "harness.pyz"))
    report["metrics"]["seconds"] = round(time.monotonic() - started, 1)
    report["metrics"]["cpu_seconds"] = round(time.process_time() + cpu_of_children(), 1)
    is_graded = report["reason"] != NOT_GRADABLE
    _write(options.report, "report.json", report)
    if is_graded:
        _write(options.report, "reward.json", report["metrics"])
    if options.tell:
        sys.stdout.write(TOLD[options.tell](report, task, options.agent) + "\n")
    else:
        json.dump({**report, "samples": None}, sys.stdout, indent=1, sort_keys=True)
    # an ungradable task is no bad work: without a reward, harnesses call it an error
    sys.exit(0 if is_graded else 1)


def _clear(folder: str) -> None:
    """Remove files that the agent may have put where rewards are read: they must not remain if grading breaks off."""
    if os.path.islink(folder):
        os.unlink(folder)
    os.makedirs(folder, exist_ok=True)
    for name in REPORTS:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))


def _sha256(*paths: str) -> str:
    whole = hashlib.sha256()
    for path in paths:
        with open(path, "rb") as file:
            whole.update(file.read())
    return whole.hexdigest()


def _write(folder: str, name: str, content: object) -> None:
    with open(os.path.join(folder, name), "x") as file:
        json.dump(content, file, indent=1, sort_keys=True)


class Refused(Exception):
    """The work gets nothing, for a *reason*."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(detail)
        self.reason = reason


class Grading:
    """The grading of one task."""

    def __init__(self, task: dict[str, Any], patch: bytes, harness: str, diff: str | None = None) -> None:
        """*patch* is the author's, *harness* the archive that runs benchmarks and tests, *diff* the file with the
        agent's changes; without it, the checkout here is the agent's.
        """
        self._task, self._patch, self._archive, self._diff = task, patch, harness, diff
        self._harness = Harness(places.HARNESS, task)
        self._metrics: dict[str, float] = {"reward": 0.0, "speedup": 1.0, "oracle_speedup_stored": task["speedup"]}
        self._report: dict[str, Any] = {"task": task["task_id"], "metrics": self._metrics}

    def grade(self) -> dict[str, Any]:
        """Return the result: `reason` in a word with `detail`, and `metrics`, all numbers, the `reward` among them.

        Raises any error that is not the agent's fault.
        """
        self._report["reason"], self._report["detail"] = "", ""
        adopt_orphans()
        try:
            self._report["reason"] = self._graded()
        except Refused as refused:
            self._metrics["reward"] = 0.0
            self._report["reason"], self._report["detail"] = refused.reason, str(refused)
        except ProcessesRemainError as error:
            is_agents = self._harness.arm == AGENT
            self._report["reason"] = "processes_remain" if is_agents else NOT_GRADABLE
            self._report["detail"] = str(error)
        except Exception as error:
            if self._harness.arm != AGENT:
                raise
            # whatever it did, an agent must not choose to have no result
            traceback.print_tb(error.__traceback__)
            self._metrics["reward"] = 0.0
            self._report["reason"], self._report["detail"] = BREAKS_GRADER, f"{type(error).__name__}: {error}"
        return self._report

    def _graded(self) -> str:
        # the agent's processes first: nothing changes after that
        self._report["ended_processes"] = end_processes(None)
        empty_public(None)
        if self._diff is not None:
            try:
                places.lay_diff(self._diff)
            except ArmFailedError as error:
                raise Refused("no_diff", str(error)) from error
        changes, left_out = places.changes_of(self._task)
        self._report["changed"], self._report["left_out"] = sorted(changes), left_out
        if not changes:
            others = f"; these do not count: {', '.join(left_out[:20])}" if left_out else ""
            raise Refused("no_change", f"no source was changed{others}")
        with self._harness.working_on(""):
            places.seal()
            os.makedirs(places.GRADED)
            shutil.copy(self._archive, places.HARNESS)
            os.chmod(places.HARNESS, 0o444)
        arms, linkers = self._built(changes)
        self._require_tests(arms)
        surveyed, consumed = self._surveyed(arms)
        sampler = ArmSampler(self._task, self._harness, arms, surveyed, linkers, consumed)
        try:
            judged = sampler.take()
            self._tell(judged, sampler)
            self._require_clocks(sampler)
            self._require_values(sampler)
            if judged.verdict != "faster":
                raise Refused(judged.verdict, self._measured(judged))
            counted = self._require_honest(sampler, judged)
            self._require_held_out(arms, linkers, judged, sampler.judged("oracle"))
        except BenchmarksFailError as error:
            raise self._failed_benchmark(error.arm, str(error)) from error
        except BuildFailsError as error:
            raise _not_built(error.arm, error) from error
        reference = self._metrics["oracle_speedup"]
        reference = reference if reference > self._task["rule"]["min_speedup"] else self._task["speedup"]
        self._metrics["reward"] = max(0.0, min(1.0, counted / math.log(reference)))
        return judged.verdict

    def _built(self, changes: dict[str, bytes | None]) -> tuple[dict[str, Place], dict[str, str]]:
        arms, linkers = {}, {}
        for arm in ARMS:
            self._harness.arm = arm
            try:
                patch, files = self._patch if arm == "oracle" else b"", changes if arm == AGENT else {}
                place = places.make(arm, patch, files)
                linkers[arm] = self._harness.linkers(place, 0, 0) if self._task["rule"]["unit"] == "build" else ""
                places.install(place, self._task, with_linkers(linkers[arm]))
            except places.UNBUILT as error:
                raise _not_built(arm, error) from error
            arms[arm] = place
        return arms, linkers

    def _require_tests(self, arms: dict[str, Place]) -> None:
        """Raise Refused unless every test passes that passed before and after the author's patch, and does so here.

        Some tests are made to fail first: one that passes all the same was not judged by pytest. Only those that fail
        on the base as well, for they share their code, are run once more.
        """
        names = self._task["pass_to_pass"]
        drawn = random.SystemRandom().sample(names, min(MOST_SABOTAGED, len(names)))
        ended = self._tested(arms[AGENT], names, drawn)
        failed = [name for name in names if ended.outcomes.get(name) != "passed"]
        base = self._tested(arms["base"], sorted({*failed, *drawn}), drawn)
        made_to_fail = [name for name in failed if base.outcomes.get(name) != "passed"]
        outcomes = {**ended.outcomes, **self._tested(arms[AGENT], made_to_fail).outcomes}
        failed = [name for name in failed if outcomes.get(name) != "passed"]
        again = self._tested(arms["base"], failed)
        # one that does not pass here without any change either says nothing of the agent's
        unfit = frozenset(name for name in failed if again.outcomes.get(name) != "passed")
        if len(unfit) > LEAST_SHARE * len(names):
            raise Refused(NOT_GRADABLE, f"tests do not pass here without any change: {', '.join(sorted(unfit)[:20])}")
        broken = [name for name in failed if name not in unfit]
        self._metrics["tests"], self._metrics["tests_failed"] = float(len(names)), float(len(broken))
        if broken:
            raise Refused("tests_fail", ", ".join(broken[:20]))
        unnoticed = [
            name for name in drawn if ended.outcomes.get(name) == "passed" and base.outcomes.get(name) != "passed"
        ]
        if unnoticed:
            raise Refused("tests_changed", f"tests that were made to fail pass: {', '.join(unnoticed)}")
        lost = [name for name in base.tools if name.startswith(JUDGES) and name not in ended.tools]
        if lost:
            raise Refused("tests_changed", f"code that judges tests is not reported: {', '.join(sorted(lost)[:20])}")
        replaced = [name for name, code in ended.tools.items() if base.tools.get(name, code) != code]
        if replaced:
            raise Refused("tests_changed", f"code that judges tests is replaced: {', '.join(sorted(replaced)[:20])}")

    def _tested(self, place: Place, names: list[str], sabotaged: Iterable[str] = ()) -> EndedTests:
        if not names:
            return EndedTests({}, {})
        root = self._task["package_root"]
        with self._harness.working_on(place.arm):
            folder = places.for_tests(place, [os.path.join(root, name) for name in sabotaged])
        return self._harness.tests(place, folder, names, self._task["tests_seconds"])

    def _surveyed(self, arms: dict[str, Place]) -> tuple[dict[str, dict[str, dict[str, Any]]], frozenset[str]]:
        """Return each benchmark's result on each arm, and those whose values are of other types than the base's.

        Raises Refused if a benchmark does not run, or computes other values.
        """
        names, surveyed = self._task["benchmarks"], {}
        for arm, place in arms.items():
            surveyed[arm], ended = self._harness.survey(place, names)
            lost = self._lost(surveyed[arm])
            if lost and arm != AGENT and self._harness.closed:
                # what its own code starts, the agent's may start too
                self._harness.closed = False
                surveyed[arm], ended = self._harness.survey(place, names)
                lost = self._lost(surveyed[arm])
            if lost:
                told = surveyed[arm].get(lost[0], {}).get("message") or ended
                raise self._failed_benchmark(arm, f"{lost[0]}: {told}")
        others, unproven = _compared(names, surveyed)
        self._report["unproven"], self._report["consumed"] = unproven, sorted(others)
        self._report["closed"] = self._harness.closed
        self._metrics["proven_share"] = 1 - len(unproven) / len(names)
        return surveyed, others

    def _lost(self, surveyed: dict[str, dict[str, Any]], names: list[str] | None = None) -> list[str]:
        return [name for name in names or self._task["benchmarks"] if surveyed.get(name, {}).get("outcome") != "ran"]

    def _failed_benchmark(self, arm: str, message: str) -> Refused:
        if arm != AGENT:
            return Refused(NOT_GRADABLE, f"{arm}: {message}")
        is_process = self._harness.closed and any(sign in message for sign in NO_PROCESS)
        return Refused("starts_processes" if is_process else "benchmarks_fail", f"{arm}: {message}")

    def _tell(self, judged: ArmVerdict, sampler: ArmSampler) -> None:
        oracle = sampler.judged("oracle")
        told = {
            "speedup": judged.speedup,
            "speedup_low": judged.low,
            "speedup_high": judged.high,
            "p_value": judged.p_value,
            "control_speedup": judged.control_speedup,
            "oracle_speedup": oracle.speedup,
            "rounds": float(len(next(iter(sampler.samples.values["base"].values())))),
            "builds": float(len(set(sampler.samples.objects[AGENT]))),
        }
        self._metrics.update({name: value for name, value in told.items() if math.isfinite(value)})
        self._report["benchmarks"] = {
            name: {"speedup": judged.by_benchmark[name], "oracle_speedup": oracle.by_benchmark[name]}
            for name in self._task["benchmarks"]
        }
        self._report["samples"] = sampler.samples.values

    def _measured(self, judged: ArmVerdict) -> str:
        """Return the measured figures, the only reason of a verdict other than `faster`."""
        oracle, builds = self._metrics.get("oracle_speedup", math.nan), self._metrics["builds"]
        rounds = f"{self._metrics['rounds']:.0f} rounds" + (f" of {builds:.0f} builds" if builds else "")
        return (
            f"{judged.speedup:.2f}× (95 % {judged.low:.2f} to {judged.high:.2f}) in {rounds}, the"
            f" author's patch {oracle:.2f}×, a second base {judged.control_speedup:.2f}×"
        )

    def _require_honest(self, sampler: ArmSampler, judged: ArmVerdict) -> float:
        """Return the logarithm of the speed-up that counts.

        Raises Refused when clocks were changed or disagree with others, and when calls only seem faster.
        """
        self._call_once(sampler)
        self._require_clocks(sampler)
        self._require_values(sampler)
        counted = self._counted(sampler.first_calls, judged, sampler.judged("oracle"))
        costs = {arm: min(sampler.spent[arm]) for arm in ARMS}
        self._report["cpu_seconds"] = costs
        if costs[AGENT] > MOST_CPU * max(costs[arm] for arm in ARMS if arm != AGENT) + MOST_BESIDE:
            raise Refused(
                "clocks_differ", f"a process takes {costs[AGENT]:.1f} s of CPU for samples of the same length"
            )
        self._require_outside(sampler)
        if self._task["is_time"]:
            self._require_savings(sampler)
        return counted

    def _require_held_out(
        self, arms: dict[str, Place], linkers: dict[str, str], judged: ArmVerdict, oracle: ArmVerdict
    ) -> None:
        """Raise Refused if other inputs give other values, or do not show the gain that the published ones show."""
        modules = {
            path: arms["base"].read(path) for path in sorted({*map(self._path_of_module, self._task["benchmarks"])})
        }
        self._report["held_out"] = "none"
        for change in held_out.CHANGES if self._task["is_time"] else ():
            drawn = held_out.draw(modules, self._task["benchmarks"], random.SystemRandom(), change)
            surveyed = self._held_out_survey(arms, drawn) if drawn else None
            if drawn and surveyed:
                break
        else:
            return
        self._report["held_out"] = change
        task = drawn.of(self._task)
        lost = self._lost(surveyed[AGENT], task["benchmarks"])
        if lost:
            raise self._failed_benchmark(AGENT, f"{lost[0]}, with other inputs")
        consumed, _ = _compared(task["benchmarks"], surveyed)
        sampler = ArmSampler(task, self._harness, arms, surveyed, linkers, consumed)
        sampler.without_builds(held_out.ROUNDS)
        self._require_clocks(sampler)
        self._require_values(sampler)
        gains = {arm: _gains(sampler.samples.values, arm) for arm in ARMS}
        mean = {arm: sum(gains[arm].values()) / len(gains[arm]) for arm in ARMS}
        self._metrics["held_out_speedup"] = math.exp(mean[AGENT])
        self._metrics["held_out_oracle_speedup"] = math.exp(mean["oracle"])
        found = held_out.Found(judged.speedup, oracle.speedup, mean[AGENT], mean["oracle"], mean["control"])
        missed = found.missed("all benchmarks", held_out.NOISE)
        for name, renamed in drawn.names.items():
            published = judged.by_benchmark[name], oracle.by_benchmark[name]
            found = held_out.Found(*published, *(gains[arm][renamed] for arm in (AGENT, "oracle", "control")))
            missed = missed or found.missed(name, held_out.NOISE_OF_ONE)
        if missed:
            raise Refused("only_known_inputs", missed)

    def _path_of_module(self, name: str) -> str:
        """Return the path of the module of a benchmark below the checkout; `` if it has none of its own."""
        folder, parts = self._task["benchmark_dir"].strip("/"), name.partition("(")[0].split(".")
        for end in range(len(parts) - 1, 0, -1):
            path = "/".join([folder, *parts[:end]]).lstrip("/") + ".py"
            if os.path.isfile(os.path.join(Place("base").repository, path)):
                return path
        return ""

    def _held_out_survey(
        self, arms: dict[str, Place], drawn: held_out.OtherInputs
    ) -> dict[str, dict[str, dict[str, Any]]] | None:
        """Return the results with the inputs *drawn*; None if any code but the agent's does not run with them."""
        names, surveyed = [*drawn.names.values()], {}
        for arm in ("base", "control", "oracle", AGENT):
            with self._harness.working_on(arm):
                arms[arm].lay({**drawn.files})
            surveyed[arm], _ = self._harness.survey(arms[arm], names)
            if arm != AGENT and self._lost(surveyed[arm], names):
                return None
        return surveyed

    def _require_clocks(self, sampler: ArmSampler) -> None:
        # what the package itself replaces, the agent's code has too
        tampered = sampler.tampered[AGENT] - sampler.tampered["base"]
        if tampered:
            raise Refused("clocks_changed", ", ".join(sorted(tampered)))

    def _require_outside(self, sampler: ArmSampler) -> None:
        """Clocks outside of the timed processes must agree with theirs, as they do for the other arms."""
        agent, others = sampler.clocked[AGENT], [sampler.clocked[arm] for arm in ARMS if arm != AGENT]
        self._report["clocks"] = {arm: vars(sampler.clocked[arm]) for arm in ARMS}
        if agent.unmet or (not agent.batches and any(other.batches for other in others)):
            raise Refused("clocks_differ", "a process did not stop for its clock to be read")
        setups = min(agent.setups, agent.batches * (MOST_SETUP * max(other.setup for other in others) + SHORT_SECONDS))
        limits = {
            "wall clock": (MOST_OUTSIDE, agent.wall, agent.accounted, [(o.wall, o.accounted) for o in others]),
            "CPU time": (
                MOST_CPU_OUTSIDE,
                agent.cpu if self._harness.closed else agent.wall,
                agent.counted + setups + agent.batches * SHORT_SECONDS,
                [(o.cpu if self._harness.closed else o.wall, o.counted + o.setups) for o in others],
            ),
        }
        for clock, (most, passed, told, theirs) in limits.items():
            usual = max(1.0, *(outside / (inside or math.inf) for outside, inside in theirs))
            if passed > most * usual * told and passed - usual * told > LEAST_OUTSIDE_SECONDS:
                raise Refused(
                    "clocks_differ", f"calls take {passed:.3g} s of {clock}, of which they account for {told:.3g} s"
                )
        seen, usual = median(sampler.memory[AGENT]), max(median(sampler.memory[arm]) for arm in ARMS if arm != AGENT)
        if seen > MOST_MEMORY * max(1.0, usual):
            raise Refused("memory_differs", f"processes occupy {seen:.3g} times the memory that they say")
        if agent.spread > MOST_SPREAD * max(1.0, *(other.spread for other in others)):
            raise Refused("clocks_differ", f"the mean call takes {agent.spread:.3g} times as long as is said")

    def _require_values(self, sampler: ArmSampler) -> None:
        """The calls within the clock must compute what the base's do."""
        self._report["proven"] = sampler.proven
        for name, differing in sampler.differing.items():
            if len(differing) > MOST_DIFFERING:
                raise Refused("returns_other", f"{_place_of(name, differing[0])}, while it is timed")

    def _counted(self, first: dict[str, Any], judged: ArmVerdict, oracle: ArmVerdict) -> float:
        """Return the logarithm of the agent's speed-up; of first calls if those say more, as they do of a cache.

        They do where the author's code is faster on them, too: then the agent's counts for what it saves there.
        """
        # the control's code is the base's: of both, the faster call is less slowed down by other load
        unchanged = {name: [*map(min, calls, first["control"][name])] for name, calls in first["base"].items()}
        gains = {
            arm: _mean([math.log(min(calls) / min(first[arm][name])) for name, calls in unchanged.items()])
            for arm in ("oracle", AGENT)
        }
        self._metrics["first_call_speedup"] = math.exp(gains[AGENT])
        self._metrics["oracle_first_call_speedup"] = math.exp(gains["oracle"])
        gain = math.log(judged.speedup)
        # of very short calls, a first one is mostly what comes with it
        if oracle.speedup <= 1 or gains["oracle"] < min(LEAST_SHARE * math.log(oracle.speedup), PLAIN_GAIN):
            return gain
        # the author's first calls may be less faster than the later ones
        usual = min(1.0, gains["oracle"] / math.log(oracle.speedup))
        if gains[AGENT] + math.log(FIRST_CALL_NOISE) >= usual * gain:
            return gain
        counted = gains[AGENT] / usual
        rounds = [
            _mean([math.log(calls[place] / first[AGENT][name][place]) for name, calls in unchanged.items()])
            for place in range(min(map(len, unchanged.values())))
        ]
        shown = sign_flip_p(rounds) <= _level(len(rounds))
        if counted < math.log(self._task["rule"]["min_speedup"]) or not shown:
            raise Refused(
                "only_called_again", f"first calls are {math.exp(gains[AGENT]):.3g} times as fast as the base's"
            )
        return counted

    def _call_once(self, sampler: ArmSampler) -> None:
        """Sample first calls until it is known whether work was moved out of them, or rounds or time are used up."""
        deadline = time.monotonic() + FIRST_CALL_SECONDS
        for _ in range(0, MOST_FIRST_CALL_ROUNDS, FIRST_CALL_ROUNDS):
            sampler.call_once(FIRST_CALL_ROUNDS)
            if not self._task["is_time"] or time.monotonic() > deadline:
                break
            if preparing.is_moved(sampler.prepared_once, sampler.saved) is not None:
                break

    def _require_savings(self, sampler: ArmSampler) -> None:
        """Savings of calls must not be spent on imports and setups, unless the author does so."""
        usual, once = sampler.prepared, sampler.prepared_once
        self._report["prepare_seconds"], self._report["prepare_once_seconds"] = usual, once
        self._report["saved_seconds"] = sampler.saved
        for prepared, level in ((usual, _level(len(usual[AGENT]))), (once, preparing.LEVEL)):
            if preparing.is_moved(prepared, sampler.saved, level):
                longer = median(preparing.difference(prepared, AGENT, "base"))
                raise Refused("work_moved", f"a process takes {longer:.3f} s longer outside of the timed calls")


def _not_built(arm: str, error: Exception) -> Refused:
    return Refused("does_not_build" if arm == AGENT else NOT_GRADABLE, f"{arm}: {error}")


def _level(rounds: int) -> float:
    return max(LEVEL, 0.5**rounds)


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def _compared(names: list[str], surveyed: dict[str, dict[str, dict[str, Any]]]) -> tuple[frozenset[str], list[str]]:
    """Return the benchmarks whose values are of other types than the base's, and those whose values prove nothing.

    Raises Refused if a benchmark computes other values.
    """
    others, unproven = set(), []
    for name in names:
        proofs = {arm: surveyed[arm][name].get("proof", []) for arm in ARMS}
        compared = ComparedValues(proofs["base"], proofs["control"], proofs["oracle"])
        differing = compared.differing(proofs[AGENT])
        if differing:
            raise Refused("returns_other", _place_of(name, differing[0]))
        if compared.of_other_types(proofs[AGENT]):
            others.add(name)
        if not compared.is_proof:
            unproven.append(name)
    return frozenset(others), unproven


def _gains(values: dict[str, dict[str, list[float]]], arm: str) -> dict[str, float]:
    """Return the logarithm of how much faster than the base each benchmark is on *arm*."""
    return {name: math.log(median(base) / median(values[arm][name])) for name, base in values["base"].items()}


def _place_of(name: str, part: str) -> str:
    return f"{name}: {part}" if part else name
