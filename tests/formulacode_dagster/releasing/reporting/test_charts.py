from __future__ import annotations

import io

import pytest

from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.measurement import Verdict
from formulacode_dagster.releasing.reporting.charts import DPI, funnel_chart, ratio_text, speedup_chart
from formulacode_dagster.releasing.reporting.facts import ReportFacts
from formulacode_dagster.releasing.reporting.funnel import count_funnel
from tests.support.entries import enter

# seconds of imports, in one process of a run
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("matplotlib")]

MOST_BYTES = 400_000
"""The pictures stay in Dagster's event log too."""


def size(png: bytes) -> tuple[int, int]:
    """Width and height of the decoded picture; it must not be blank."""
    from matplotlib.image import imread

    pixels = imread(io.BytesIO(png), format="png")
    assert pixels.std() > 0.01
    return pixels.shape[1], pixels.shape[0]


def test_the_funnel_is_a_picture_of_sane_size(facts: ReportFacts) -> None:
    png = funnel_chart(facts.funnel)
    width, height = size(png)
    assert width == 9 * DPI
    assert 3 * DPI < height < 7 * DPI
    assert len(png) < MOST_BYTES


def test_a_funnel_of_nothing_can_be_drawn(nothing: ReportFacts) -> None:
    size(funnel_chart(nothing.funnel))


@pytest.mark.slow
def test_a_funnel_of_many_with_many_reasons_can_be_drawn() -> None:
    entries = [enter(Stage.PULL_REQUESTS, f"a/b#{n}") for n in range(20_000)]
    entries += [enter(Stage.CLASSIFICATIONS, f"a/b#{n}", f"failed a_reason_of_its_own_{n % 9}") for n in range(20_000)]
    png = funnel_chart(count_funnel("2026-02", entries))
    assert size(png)[0] == 9 * DPI


def test_a_reason_is_text_and_never_a_formula() -> None:
    # matplotlib reads what stands between dollar signs as mathematics, and fails on what is none
    size(funnel_chart(count_funnel("2026-02", [enter(Stage.IMAGES, "a/b#1", r"failed $\nothing{$")])))


@pytest.mark.slow
def test_speedups_are_a_picture_that_grows_with_the_tasks_up_to_a_limit(facts: ReportFacts) -> None:
    few = speedup_chart(facts)
    assert size(few)[0] == 9 * DPI
    many = facts.model_copy(
        update={"measured": tuple(facts.measured[0].model_copy(update={"item": f"a/b#{n}"}) for n in range(300))}
    )
    png = speedup_chart(many)
    assert size(few)[1] < size(png)[1] < 13 * DPI
    assert len(png) < MOST_BYTES


def test_nothing_measured_says_so(nothing: ReportFacts) -> None:
    size(speedup_chart(nothing))


@pytest.mark.parametrize("ratio", [1e-6, 0.5, 1.0, 1.0001, 3.0, 1e7])
def test_any_ratio_can_be_drawn(facts: ReportFacts, ratio: float) -> None:
    task = facts.measured[0].model_copy(
        update={"speedup": ratio, "low": ratio, "high": ratio, "ratios": (ratio,), "control": ratio}
    )
    size(speedup_chart(facts.model_copy(update={"measured": (task,)})))


@pytest.mark.parametrize("verdict", list(Verdict))
def test_every_verdict_can_be_drawn(facts: ReportFacts, verdict: Verdict) -> None:
    task = facts.measured[0].model_copy(update={"verdict": verdict})
    size(speedup_chart(facts.model_copy(update={"measured": (task,)})))


def test_a_measurement_without_a_single_benchmark_can_be_drawn(facts: ReportFacts) -> None:
    task = facts.measured[1].model_copy(update={"ratios": (), "benchmarks": 0})
    size(speedup_chart(facts.model_copy(update={"measured": (task,)})))


def test_ratios_are_written_with_three_digits() -> None:
    assert [ratio_text(ratio) for ratio in (0.98, 1.0, 9.994, 12.34, 49.96, 80.4, 12345.6)] == [
        "0.98×",
        "1.00×",
        "9.99×",
        "12.3×",
        "50.0×",
        "80×",
        "12,346×",
    ]
