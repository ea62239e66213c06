from __future__ import annotations

import pytest

from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.operating.runner.log_lines import LINES_PER_REASON, AlsoLogged, WaitLines
from formulacode_dagster.operating.runner.progress import ProgressListener
from tests.support.clock import FakeClock


def test_a_long_wait_is_a_line_a_minute_with_what_is_left() -> None:
    said: list[str] = []
    clock = FakeClock(1_000.0)
    lines = WaitLines(said.append, clock)
    for left in (150.0, 90.0, 30.0):
        lines.waiting("the limit", left)
        lines.waiting("the limit", left - 1)
        clock.now += 60
    assert said == [
        "waiting 2 min 30 s, until 00:19:10 UTC: the limit",
        "waiting 1 min 30 s, until 00:19:10 UTC: the limit",
        "waiting 30 s, until 00:19:10 UTC: the limit",
    ]


def test_a_short_wait_is_not_worth_a_line() -> None:
    WaitLines(pytest.fail).waiting("pacing", 2.0)


def test_a_log_hears_of_waits_and_warnings_and_the_listener_of_everything() -> None:
    said: list[str] = []
    heard: list[tuple[str, float]] = []

    class Listening(ProgressListener):
        def waiting(self, stage: Stage, reason: str, seconds: float) -> None:
            heard.append((reason, seconds))

        def warn(self, stage: Stage, text: str) -> None:
            heard.append((text, 0.0))

    to = AlsoLogged(Listening(), said.append, lambda text: said.append(f"warning: {text}"))
    to.waiting(Stage.REPOSITORIES, "the limit", 10.0)
    to.waiting(Stage.REPOSITORIES, "pacing", 1.0)
    to.note(Stage.REPOSITORIES, "a line of a build")
    to.warn(Stage.REPOSITORIES, "no cache")
    assert heard == [("the limit", 10.0), ("pacing", 1.0), ("no cache", 0.0)]
    assert [text.split(",")[0] for text in said] == ["waiting 10 s", "warning: no cache"]


def finished(stage: Stage, ends: list[tuple[ItemState, str]]) -> list[str]:
    """The log of a stage whose items end like this, a second each."""
    said: list[str] = []
    to = AlsoLogged(ProgressListener(), said.append, pytest.fail)
    for number, (state, reason) in enumerate(ends, 1):
        to.item_finished(stage, f"a/b#{number}", state, reason, 1.0)
    to.stage_finished(stage)
    return said


def test_an_item_is_a_line_with_how_it_ended_and_how_long_it_took() -> None:
    ends = [(ItemState.DONE, ""), (ItemState.REJECTED, "title"), (ItemState.FAILED, "build")]
    assert finished(Stage.CLASSIFICATIONS, ends) == [
        "a/b#1: done after 1.0 s",
        "a/b#2: rejected (title) after 1.0 s",
        "a/b#3: failed (build) after 1.0 s",
    ]


def test_thousands_of_equal_ends_are_counted_and_hide_no_other() -> None:
    ends = [(ItemState.REJECTED, "title")] * 2_936 + [(ItemState.FAILED, "timeout")]
    said = finished(Stage.CLASSIFICATIONS, ends)
    assert len(said) == LINES_PER_REASON + 2
    assert said[-2:] == ["a/b#2937: failed (timeout) after 1.0 s", "2,916 more: rejected (title)"]


def test_every_item_of_a_long_stage_has_its_line() -> None:
    assert len(finished(Stage.IMAGES, [(ItemState.DONE, "")] * 300)) == 300
