"""A build with coverage is a build: it takes its turn, and counts as one."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import pytest

from formulacode_dagster.engines.protocol import Completed
from formulacode_dagster.measurement import compiled_lines
from formulacode_dagster.measurement.budget import Budget
from formulacode_dagster.measurement.compiled_lines import CompiledLines
from formulacode_dagster.measurement.plan import SamplingPlan
from formulacode_dagster.models.image import ResourceLimits
from formulacode_dagster.models.measurement import Arm
from formulacode_dagster.suites.questions import Coverage
from tests.records import make_image


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    instrument = SimpleNamespace(instrument=lambda _: Coverage(variables={"PATH": "/cc"}, data="/data"))
    monkeypatch.setattr(compiled_lines, "Remote", lambda *_, **__: instrument)
    return Clock()


def test_a_build_with_coverage_takes_the_turn_of_builds(clock: Clock) -> None:
    turns: list[str] = []

    @contextmanager
    def turn():
        clock.now += 3600
        turns.append("taken")
        yield
        turns.append("over")

    def reinstall(**_):
        assert turns == ["taken"]
        clock.now += 40
        return Completed(0, b"", b"", 40.0)

    engine = SimpleNamespace(session=lambda *_, **__: nullcontext(SimpleNamespace(reinstall=reinstall)))
    budget = Budget(100.0, clock=clock)
    said: list[str] = []
    known = (engine, make_image(), "run", b"", ResourceLimits(), SamplingPlan(), budget, said.append, turn)
    with CompiledLines(*known) as compiled:
        compiled._build(Arm.BASE, {"fast.c": frozenset({1})})
    assert turns == ["taken", "over"]
    assert (budget.spent, budget.built) == (0.0, 40.0)
