"""The pictures of a month's results: of sane size, and not blank."""

from __future__ import annotations

import io

import pytest

from formulacode_dagster.models.agent_run import HackVerdict
from formulacode_dagster.releasing.results.pictures import DPI, cost_picture, score_picture
from formulacode_dagster.releasing.results.table import agent_results
from tests.support.agent_runs import MONTH, TAG, agent_run

# seconds of imports, in one process of a run
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("matplotlib")]


def pixels(png):
    from matplotlib.image import imread

    found = imread(io.BytesIO(png), format="png")
    assert found.std() > 0.01
    return found


@pytest.fixture
def rows():
    costs = {"oracle": None, "$a_1$ agent": 0.5, "dear": 2.0}
    runs = [
        agent_run(task, reward, name, dollars=costs[name], hack=HackVerdict.HONEST)
        for name, rewards in (("oracle", (1.0, 1.0)), ("$a_1$ agent", (0.2, 0.6)), ("dear", (0.1, 0.3)))
        for task, reward in zip("ab", rewards, strict=True)
    ]
    return agent_results([*runs, agent_run("a", None, "broken")], MONTH, TAG, 2)


def test_scores_are_drawn_with_their_intervals(rows):
    height, width, _ = pixels(score_picture(rows)).shape
    assert width == 8 * DPI
    assert DPI < height < 4 * DPI


def test_costs_are_drawn_where_they_are_known(rows):
    assert pixels(cost_picture(rows)).shape[1] == 8 * DPI
    assert cost_picture([row for row in rows if row.agent == "oracle"]) is None
    assert pixels(score_picture([])).shape[1] == 8 * DPI
