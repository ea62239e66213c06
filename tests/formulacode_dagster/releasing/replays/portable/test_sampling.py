"""The rounds of `./replay` are those of the platform: same seed, same requests in the same order."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from formulacode_dagster.building.suites.questions import NotTimed, Timed
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.models.measurement import Arm, RandomizationUnit
from formulacode_dagster.releasing.replays.portable.arms import ARMS
from formulacode_dagster.releasing.replays.portable.harness_requests import TaskFailedError
from formulacode_dagster.releasing.replays.portable.sampling import PATIENCE, ReplayBudget, RoundSampler
from tests.support.scripted_sampler import Answer, TakeSamples, take, twice_as_fast

__all__ = ["take"]

PLAN = SamplingPlan(seed=7)
QUIET = {"steal": 0.0, "others": 0.0, "own": 0.0, "load": 0.0, "mhz": 0.0, "machine": "a machine"}


class ScriptedArms:
    """The arms of `./replay`, which answer from a script and remember what they were asked."""

    built_seconds = 0.0

    def __init__(self, answer: Answer) -> None:
        self.asked: list[tuple[Any, ...]] = []
        self.by_name = {arm: SimpleNamespace(time=self._timed(Arm(arm))) for arm in ARMS}
        self._answer = answer
        self._builds = dict.fromkeys(ARMS, -1)

    def build_anew(self, arm: str, generator: object) -> dict[str, str]:
        self._builds[arm] += 1
        return {"folder": f"/{self._builds[arm]}", "objects": f"{arm}{self._builds[arm]}"}

    def _timed(self, arm: Arm):
        def time(asked: list[dict[str, Any]], setting: dict[str, Any], abreast: int = 1) -> SimpleNamespace:
            samples = []
            for each in asked:
                conditions = [setting[name] for name in ("hash_seed", "padding", "core", "build", "seconds")]
                self.asked.append((each["attribute"], arm, *conditions, each["once"]))
                told = self._answer(each["attribute"], arm, len(self.asked))
                outcome = {"outcome": "timed"} if isinstance(told, Timed) else {"outcome": told.kind}
                samples.append({**told.model_dump(), **outcome})
            return SimpleNamespace(samples=samples, conditions=QUIET, seconds=sum(each["wall"] for each in samples))

        return time


def sample(names: list[str], answer: Answer, unit: RandomizationUnit = RandomizationUnit.PROCESS):
    arms = ScriptedArms(answer)
    surveyed = {
        name: {
            "name": name,
            "module": "m",
            "owner": "",
            "attribute": name,
            "index": 0,
            "timeout": 1.0,
            "cache_folder": "",
            "outcome": "ran",
            "seconds": 0.001,
        }
        for name in names
    }
    rule = PLAN.rule(unit).model_dump(mode="json")
    task = {"benchmarks": names, "plan": PLAN.model_dump(mode="json"), "rule": rule}
    budget = ReplayBudget(PLAN.max_seconds * PATIENCE)
    sampler = RoundSampler(arms, task, dict.fromkeys(ARMS, surveyed), budget, PLAN.seed, 0, lambda _: None)
    sampler.take()
    return sampler, arms.asked


def one_is_long(name: str, arm: Arm, count: int) -> Timed:
    sample = twice_as_fast(name, arm, count)
    return sample.model_copy(update={"value": 20 * sample.value}) if name == "b" else sample


@pytest.mark.parametrize("answer", [twice_as_fast, one_is_long])
@pytest.mark.parametrize("unit", RandomizationUnit)
def test_the_same_is_asked_in_the_same_order_as_the_platform_does(
    take: TakeSamples, unit: RandomizationUnit, answer: Answer
) -> None:
    names = ["a", "b", "c"]
    ours = take(names, answer, PLAN, unit=unit, patience=PATIENCE)
    theirs, asked = sample(names, answer, unit)
    expected = [
        (name, arm, setting.hash_seed, setting.padding, setting.core, setting.build, seconds, once)
        for name, arm, setting, once, seconds in take.world.asked
    ]
    # the platform stopped at a look
    assert 0 < len(expected) < len(asked)
    assert asked[: len(expected)] == expected
    assert theirs.rounds == PLAN.looks[-1].units
    for result in ours.judged.results:
        taken = [each for each in theirs.samples[result.benchmark] if each["round"] < ours.rounds]
        assert [{**each, "objects": ""} for each in taken] == [
            {**each.model_dump(mode="json"), "objects": ""} for each in result.samples
        ]


def test_what_fails_once_is_timed_again_on_every_arm() -> None:
    def once(name: str, arm: Arm, count: int) -> Timed | NotTimed:
        return NotTimed(kind="crash", message="") if count == 5 else twice_as_fast(name, arm, count)

    sampler, _ = sample(["a", "b"], once)
    assert len(sampler.samples["a"]) == len(sampler.samples["b"]) == 3 * sampler.rounds


@pytest.mark.parametrize(
    ("broken", "kind"), [((Arm.ORACLE,), "oracle_breaks_benchmarks"), (tuple(Arm), "workload_differs")]
)
def test_what_fails_twice_ends_the_replay_by_name(broken: tuple[Arm, ...], kind: str) -> None:
    def fails(name: str, arm: Arm, count: int) -> Timed | NotTimed:
        is_broken = name == "b" and arm in broken
        return NotTimed(kind="crash", message="") if is_broken else twice_as_fast(name, arm, count)

    with pytest.raises(TaskFailedError, match="b cannot be timed here: crash on the") as failed:
        sample(["a", "b"], fails)
    assert failed.value.kind == kind
