from __future__ import annotations

import pytest

from formulacode_dagster.items import progress
from formulacode_dagster.items.progress import AlsoLogged, Silence, WaitLines, duration
from formulacode_dagster.models.items import Stage


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.2, "1 s"), (45, "45 s"), (59.5, "1 min 0 s"), (125, "2 min 5 s"), (4_200, "1 h 10 min"), (0, "0 s")],
)
def test_a_duration_is_read_at_a_glance(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_a_long_wait_is_a_line_a_minute_with_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    now = [1_000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(progress.time, "time", lambda: now[0])
    lines = WaitLines(said.append)
    for left in (150.0, 90.0, 30.0):
        lines.waiting("the limit", left)
        lines.waiting("the limit", left - 1)
        now[0] += 60
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

    class Listening(Silence):
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
