"""The sampler over sessions that answer from a script."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest

from formulacode_dagster.building.suites.questions import (
    Conditions,
    KeptBuild,
    NotTimed,
    ProcessAnswer,
    ProcessSetting,
    SurveyedBenchmark,
    Timed,
    TimedBenchmark,
)
from formulacode_dagster.building.suites.remote import HarnessClient
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.relevance import BenchmarkCandidate
from formulacode_dagster.measuring.measurement.sampling import MoreSeconds, Sampler, Taken, no_more_seconds
from formulacode_dagster.measuring.measurement.time_budget import TimeBudget
from formulacode_dagster.models.measurement import Arm, RandomizationUnit

Answer = Callable[[str, Arm, int], Timed | NotTimed]
"""A benchmark's sample on an arm, by name and number."""


class World:
    """Inputs of the samples."""

    def __init__(self, answer: Answer) -> None:
        self.asked: list[tuple[str, Arm, ProcessSetting, bool, float]] = []
        self.builds: list[Arm] = []
        self.now = 0.0
        self.answer = answer
        self.conditions: Callable[[int], dict[str, Any]] = lambda _: {}


class ScriptedRemote:
    """A session's harness that answers from a script, on a clock of its own, and remembers what it was asked."""

    def __init__(self, arm: Arm, world: World) -> None:
        self.arm, self.world = arm, world

    def time(self, asked: Sequence[TimedBenchmark], *, seconds: float, setting: ProcessSetting) -> ProcessAnswer:
        world = self.world
        samples = []
        for request in asked:
            world.asked.append((request.benchmark.attribute, self.arm, setting, request.once, seconds))
            samples.append(world.answer(request.benchmark.attribute, self.arm, len(world.asked)))
        spent = sum(sample.wall for sample in samples)
        world.now += spent
        conditions = Conditions.model_validate({"machine": "a machine", **world.conditions(len(world.asked))})
        return ProcessAnswer(tuple(samples), conditions, spent)


def candidate(name: str, **changes: object) -> BenchmarkCandidate:
    """A benchmark that ran on every arm, and executes the change."""
    fields = {"name": name, "module": "m", "owner": "", "attribute": name, "index": 0, "timeout": 1.0}
    surveyed = SurveyedBenchmark.model_validate(
        fields | {"cache_folder": "", "outcome": "ran", "seconds": 0.001, **changes}
    )
    return BenchmarkCandidate(dict.fromkeys(Arm, surveyed), True)


class TakeSamples:
    """Takes samples of benchmarks (names, or candidates) in a scripted world; `world` is the last one."""

    world: World

    def __call__(
        self,
        names: Sequence[str | BenchmarkCandidate],
        answer: Answer,
        plan: SamplingPlan | None = None,
        *,
        unit: RandomizationUnit = RandomizationUnit.PROCESS,
        conditions: Callable[[int], dict[str, Any]] | None = None,
        build_seconds: float = 0.0,
        waited: float = 0.0,
        unbuilt: Callable[[Arm, int], object] | None = None,
        patience: float = 1,
        more_seconds: MoreSeconds = no_more_seconds,
    ) -> Taken:
        """Their result by *plan*."""
        plan = plan or SamplingPlan()
        world = self.world = World(answer)
        world.conditions = conditions or world.conditions
        budget = TimeBudget(plan.max_seconds * patience, clock=lambda: world.now)
        with budget.paused():
            world.now += waited

        def make_build(arm: Arm) -> KeptBuild:
            if unit is RandomizationUnit.PROCESS:
                return KeptBuild(objects=arm)
            world.builds.append(arm)
            if unbuilt:
                unbuilt(arm, world.builds.count(arm))
            number = world.builds.count(arm) - 1
            with budget.building():
                world.now += build_seconds
            return KeptBuild(folder=f"/{number}", objects=f"{arm}{number}")

        sampler = Sampler(
            {arm: cast("HarnessClient", ScriptedRemote(arm, world)) for arm in Arm},
            [candidate(name) if isinstance(name, str) else name for name in names],
            plan=plan,
            rule=plan.rule(unit),
            budget=budget,
            make_build=make_build,
            core=0,
            note=lambda _: None,
            more_seconds=more_seconds,
        )
        return sampler.take()


@pytest.fixture
def take() -> TakeSamples:
    """Take samples in a scripted world."""
    return TakeSamples()


def twice_as_fast(_name: str, arm: Arm, count: int) -> Timed:
    """The answer of a world in which the oracle takes half."""
    return Timed(value=(0.1 + count % 7 / 10_000) / (2 if arm is Arm.ORACLE else 1), calls=5, wall=1.0, waited=True)
