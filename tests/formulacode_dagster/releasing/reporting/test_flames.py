"""Stacks as flame graphs."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest

from formulacode_dagster.models.measurement import Arm, Frame, Stacks, StackTime, TaskProfile
from formulacode_dagster.releasing.reporting.flames import WIDTH, flame_graph, flame_graphs, flames_page, hot_frames

OUTER, SLOW, ODD = (
    Frame(file="pkg/core.py", function=name, line=1) for name in ("outer", "slow", "<listcomp>&\"'</svg>")
)


def sampled(*spent: tuple[tuple[int, ...], float], frames: tuple[Frame, ...]) -> Stacks:
    told = tuple(StackTime(frames=stack, seconds=seconds) for stack, seconds in spent)
    return Stacks(frames=frames, stacks=told, calls=4, seconds=sum(seconds for _, seconds in spent))


BASE = sampled(((0, 1), 6.0), ((0, 2), 1.0), ((0,), 1.0), frames=(OUTER, SLOW, ODD))
FAST = sampled(((0,), 2.0), frames=(OUTER,))
PROFILE = TaskProfile(
    month="2026-02",
    repository_id=1,
    number=1,
    image_digest="sha256:1",
    stacks={"bench.time_it": {Arm.BASE: BASE, Arm.ORACLE: FAST}},
)
SVG = "{http://www.w3.org/2000/svg}"


def bars(svg: str) -> list[tuple[str, float, float, float]]:
    """Title, left edge, top and width of each bar."""
    groups = ElementTree.fromstring(svg)  # noqa: S314 - our own
    return [
        (
            group.find(f"{SVG}title").text,
            *(float(group.find(f"{SVG}rect").attrib[name]) for name in ("x", "y", "width")),
        )
        for group in groups
    ]


def test_a_bar_is_as_wide_as_its_time_and_stands_on_what_called_it():
    outer, slow, odd = bars(flame_graph(BASE, longest_call=2.0))
    assert (outer[1], outer[3]) == (0.0, WIDTH)
    assert (slow[1], slow[3]) == (0.0, WIDTH * 6 / 8)
    assert (odd[1], odd[3]) == (WIDTH * 6 / 8, WIDTH / 8)
    assert slow[2] < outer[2]
    assert slow[0] == "slow (pkg/core.py:1), 1.5 s a call"


def test_names_of_others_are_text():
    svg = flame_graph(BASE, longest_call=2.0)
    assert bars(svg)[2][0].startswith("<listcomp>&\"'</svg> (pkg")
    assert svg.count("</svg>") == 1


def test_what_is_gained_is_empty_in_the_picture_of_the_patch():
    graphs = flame_graphs(PROFILE)["bench.time_it"]
    widths = {arm: max(bar[3] for bar in bars(svg)) for arm, svg in graphs.items()}
    assert widths == {Arm.BASE: WIDTH, Arm.ORACLE: WIDTH / 4}


def test_the_page_is_whole_and_has_both_sides():
    page = flames_page("a/b<c>#1", PROFILE)
    assert "a/b&lt;c&gt;#1" in page
    assert re.findall(r"<h3>(\w+): ([\d.]+) s a call", page) == [("base", "2"), ("oracle", "0.5")]


def test_hot_frames_are_by_own_time_of_a_call_on_either_side():
    hot = hot_frames(PROFILE.stacks["bench.time_it"], 2)
    assert hot == [(SLOW, {Arm.BASE: 1.5}), (OUTER, {Arm.BASE: 0.25, Arm.ORACLE: 0.5})]


@pytest.mark.parametrize("stacks", [Stacks(frames=(), stacks=(), calls=0, seconds=0.0), FAST])
def test_nothing_sampled_is_an_empty_picture(stacks):
    ElementTree.fromstring(flame_graph(stacks, longest_call=0.0))  # noqa: S314 - our own
