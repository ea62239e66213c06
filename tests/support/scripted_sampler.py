"""The sampler over sessions that answer from a script."""

import pytest

from formulacode_dagster.measurement.budget import Budget
from formulacode_dagster.measurement.plan import SamplingPlan
from formulacode_dagster.measurement.relevance import Candidate
from formulacode_dagster.measurement.sampling import Sampler
from formulacode_dagster.models.measurement import Arm, Unit
from formulacode_dagster.suites.questions import Conditions, KeptBuild, ProcessAnswer, SurveyedBenchmark, Timed


class ScriptedRemote:
    """A session's harness that answers from a script, on a clock of its own, and remembers what it was asked."""

    def __init__(self, arm, world):
        self.arm, self.world = arm, world

    def time(self, asked, *, seconds, setting):
        world = self.world
        samples = []
        for request in asked:
            world.asked.append((request.benchmark.attribute, self.arm, setting, request.once, seconds))
            samples.append(world.answer(request.benchmark.attribute, self.arm, len(world.asked)))
        spent = sum(sample.wall for sample in samples)
        world.now += spent
        conditions = Conditions(**{"machine": "a machine", **world.conditions(len(world.asked))})
        return ProcessAnswer(tuple(samples), conditions, spent)


class World:
    """What the samples depend on."""

    def __init__(self, answer):
        self.asked, self.builds, self.now = [], [], 0.0
        self.answer = answer
        self.conditions = lambda _: {}


def candidate(name, seconds=0.001, **changes):
    fields = {"name": name, "module": "m", "owner": "", "attribute": name, "index": 0, "timeout": 1.0}
    surveyed = SurveyedBenchmark.model_validate(
        fields | {"cache_folder": "", "outcome": "ran", "seconds": seconds, **changes}
    )
    return Candidate(dict.fromkeys(Arm, surveyed), True)


@pytest.fixture
def take():
    """Take samples of benchmarks (names, or candidates) in a scripted world; `take.world` is the last one."""

    def run(
        names,
        answer,
        plan=None,
        *,
        unit=Unit.PROCESS,
        conditions=None,
        build_seconds=0.0,
        waited=0.0,
        unbuilt=None,
        patience=1,
    ):
        plan = plan or SamplingPlan()
        world = run.world = World(answer)
        world.conditions = conditions or world.conditions
        budget = Budget(plan.max_seconds * patience, clock=lambda: world.now)
        with budget.paused():
            world.now += waited

        def make_build(arm):
            if unit is Unit.PROCESS:
                return KeptBuild(objects=arm)
            world.builds.append(arm)
            if unbuilt:
                unbuilt(arm, world.builds.count(arm))
            number = world.builds.count(arm) - 1
            with budget.building():
                world.now += build_seconds
            return KeptBuild(folder=f"/{number}", objects=f"{arm}{number}")

        sampler = Sampler(
            {arm: ScriptedRemote(arm, world) for arm in Arm},
            [candidate(name) if isinstance(name, str) else name for name in names],
            plan=plan,
            rule=plan.rule(unit),
            budget=budget,
            make_build=make_build,
            core=0,
            note=lambda _: None,
        )
        return sampler.take()

    return run


def twice_as_fast(name, arm, count):
    return Timed(value=(1 + count % 7 / 1000) / (2 if arm is Arm.ORACLE else 1), calls=5, wall=1.0, waited=True)
