from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from formulacode_dagster.models.measurement import Arm
from formulacode_dagster.releasing.reporting.plots import WIDTH, bars, interval_plot, quantity_text, samples_plot


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.25e-3, "seconds", "1.25 ms"),
        (2.0, "seconds", "2 s"),
        (3e-10, "seconds", "0.3 ns"),
        (3.5 * 2**20, "bytes", "3.5 MiB"),
        (12.0, "bytes", "12 B"),
        (12.5, "items", "12.5 items"),
        (7.0, "", "7"),
    ],
)
def test_a_value_is_told_in_the_step_of_its_unit_that_suits_it(value: float, unit: str, text: str) -> None:
    assert quantity_text(value, unit) == text


def places(path: str) -> list[float]:
    return [float(place) for place in re.findall(r"[MH](-?\d+\.\d)", path)]


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)  # noqa: S314 - our own


def part(svg: str, name: str) -> str:
    (found,) = (each for each in parsed(svg).iter() if each.get("class") == name)
    return found.attrib["d"]


@pytest.mark.parametrize(
    ("interval", "kind"), [((1.5, 2.0, 2.5), "good"), ((0.4, 0.5, 0.6), "bad"), ((0.9, 1.1, 1.3), "open")]
)
def test_an_interval_lies_right_of_the_axis_where_it_is_better(interval: tuple[float, float, float], kind: str) -> None:
    low, high = places(part(interval_plot(*interval, span=2.5), f"interval {kind}"))
    assert 0 <= low < high <= WIDTH
    assert (low > WIDTH / 2, high < WIDTH / 2) == (kind == "good", kind == "bad")


@pytest.mark.parametrize("bound", [0.0, float("inf"), float("nan")])
def test_an_interval_without_bounds_stays_in_the_picture(bound: float) -> None:
    svg = interval_plot(bound, 1.0, bound, span=2.0)
    assert all(0 <= place <= WIDTH for place in places(svg))


def test_each_arm_has_its_dots_median_and_middle_half_on_one_axis() -> None:
    svg = parsed(samples_plot({Arm.BASE: [4.0, 5.0, 6.0], Arm.ORACLE: [2.0, 2.0]}, "seconds"))
    dots = [places(each.attrib["d"]) for each in svg.iter() if each.get("class") == "dots"]
    assert [len(arm) for arm in dots] == [3, 2]
    assert dots[1] == [5.0, 5.0]
    assert dots[0][-1] == WIDTH - 5
    assert "".join(svg.itertext()) == "base: median 5 s of 3; oracle: median 2 s of 2"


def test_distant_samples_have_a_log_axis_and_equal_ones_do_not_divide() -> None:
    assert "logarithmic" in samples_plot({Arm.BASE: [100.0], Arm.ORACLE: [1.0]}, "bytes")
    assert all(0 <= place <= WIDTH for place in places(samples_plot({Arm.BASE: [1.0, 1.0]}, "seconds")))


def test_bars_are_in_proportion() -> None:
    assert bars([1, 4, 2]) == [25, 100, 50]
    assert bars([0]) == [0]
    assert bars([]) == []
