from __future__ import annotations

import io
from datetime import UTC, datetime

import pytest
from rich.console import Console

from formulacode_dagster.building.engines.machines import REMEDY
from formulacode_dagster.cli.terminal import Bars, plain, show_endings, show_findings, show_funnel, show_story
from formulacode_dagster.models.items import Cost, ItemKind, ItemState, LedgerEntry, Stage
from formulacode_dagster.operating.runner.progress import ProgressListener
from formulacode_dagster.operating.store.ledger import Ending
from formulacode_dagster.operating.store.usage import UsageTotal
from formulacode_dagster.releasing.reporting.funnel import count_funnel
from resources.probes import Health, ProbeResult

HOSTILE = "[/red] [bold]{} \\"


def console(*, terminal: bool = False, term: str = "xterm", width: int = 100) -> Console:
    return Console(
        file=io.StringIO(),
        force_terminal=terminal,
        width=width,
        soft_wrap=True,
        _environ={"TERM": term},
    )


def printed(to: Console) -> str:
    assert isinstance(to.file, io.StringIO)
    return to.file.getvalue()


def one_stage(listener: ProgressListener) -> None:
    listener.stage_started(Stage.IMAGES, "2026-02", 3, 2)
    listener.item_finished(Stage.IMAGES, "a/b#1", ItemState.DONE, "", 1.0)
    listener.note(Stage.IMAGES, HOSTILE * 40)
    listener.item_finished(Stage.IMAGES, "a/b#2", ItemState.FAILED, HOSTILE, 1.0)
    listener.item_finished(Stage.IMAGES, "a/b#3", ItemState.DONE, "", 1.0)
    listener.stage_finished(Stage.IMAGES)


@pytest.mark.parametrize(("terminal", "term"), [(False, "xterm"), (False, "dumb"), (True, "dumb"), (True, "unknown")])
def test_where_bars_cannot_be_drawn_there_are_plain_lines(terminal: bool, term: str) -> None:
    to = console(terminal=terminal, term=term)
    with Bars(to) as bars:
        one_stage(bars)
    assert printed(to) == "  images: 3 to do\n  images: 2 done, 1 failed; 2 unchanged\n"


def test_without_bars_occasional_lines_show_progress_and_the_rest() -> None:
    seconds, waits = [0.0], f"a/b#2: waits until nothing is timed on this machine; {REMEDY}"
    to = console(width=140)
    with Bars(to, clock=lambda: seconds[0]) as bars:
        bars.stage_started(Stage.MEASUREMENTS, "2026-02", 4, 0)
        for passed, act in (
            (5, lambda: bars.item_finished(Stage.MEASUREMENTS, "a/b#1", ItemState.DONE, "", 5.0)),
            (20, lambda: bars.note(Stage.MEASUREMENTS, waits)),
            (25, lambda: bars.note(Stage.MEASUREMENTS, "a/b#2: round 4 of 7")),
            (40, lambda: bars.item_finished(Stage.MEASUREMENTS, "a/b#2", ItemState.DONE, "", 35.0)),
        ):
            seconds[0] = float(passed)
            act()
        bars.stage_finished(Stage.MEASUREMENTS)
    assert printed(to).splitlines() == [
        "  measurements: 4 to do",
        "  measurements: 1 of 4, about 1 min 0 s left, " + waits,
        "  measurements: 2 of 4, about 40 s left, a/b#2 done",
        "  measurements: 2 done; 0 unchanged",
    ]


def test_a_long_step_says_how_long_it_takes() -> None:
    seconds, to = [0.0], console()
    with Bars(to, clock=lambda: seconds[0]) as bars:
        bars.break_silence()
        bars.stage_started(Stage.GRADINGS, "2026-02", 1, 0)
        for passed in (1, 30, 70, 100, 130, 400):
            if passed == 1:
                bars.note(Stage.GRADINGS, "a/b#1: probe oracle, try 1 of 3")
            seconds[0] = float(passed)
            bars.break_silence()
        bars.stage_finished(Stage.GRADINGS)
        seconds[0] = 1000.0
        bars.break_silence()
    assert printed(to).splitlines() == [
        "  gradings: 1 to do",
        "  gradings: 0 of 1, a/b#1: probe oracle, try 1 of 3, for 1 min 10 s",
        "  gradings: 0 of 1, a/b#1: probe oracle, try 1 of 3, for 2 min 10 s",
        "  gradings: 0 of 1, a/b#1: probe oracle, try 1 of 3, for 6 min 40 s",
        "  gradings: 0 unchanged",
    ]


def test_the_first_finished_task_is_shown_with_its_speedup_at_once() -> None:
    to = console(width=200)
    with Bars(to, speedup_of=lambda item: f"{len(item)}.00× (4.00 to 6.00)") as bars:
        bars.stage_started(Stage.MEASUREMENTS, "2026-02", 3, 0)
        bars.item_finished(Stage.MEASUREMENTS, "a/b#1", ItemState.REJECTED, "no_speedup", 1.0)
        for item in ("a/b#2", "a/b#3"):
            bars.item_finished(Stage.MEASUREMENTS, item, ItemState.DONE, "", 1.0)
    (line,) = [line for line in printed(to).splitlines() if "first task" in line]
    assert line == "  first task: a/b#2 is 5.00× (4.00 to 6.00) faster; fc-data why a/b#2"


def test_a_stage_with_nothing_to_do_is_one_line() -> None:
    to = console()
    with Bars(to) as bars:
        bars.stage_started(Stage.IMAGES, "2026-02", 0, 7)
        bars.stage_finished(Stage.IMAGES)
    assert printed(to) == "  images: 7 unchanged\n"


def test_a_terminal_shows_a_bar_with_what_came_of_it() -> None:
    to = console(terminal=True)
    with Bars(to) as bars:
        one_stage(bars)
    text = printed(to)
    assert "\x1b[" in text
    for said in ("images", "3/3", "2 done, 1 failed; 2 unchanged"):
        assert said in text


@pytest.mark.parametrize("terminal", [True, False])
def test_a_stage_may_have_two_legs(terminal: bool) -> None:
    to = console(terminal=terminal)
    with Bars(to) as bars:
        for leg in range(2):
            bars.stage_started(Stage.PULL_REQUESTS, "2026-02", 1, 0)
            bars.item_finished(Stage.PULL_REQUESTS, f"a/b#{leg}", ItemState.DONE, "", 1.0)
            bars.stage_finished(Stage.PULL_REQUESTS)
    assert ("2/2" in printed(to)) is terminal


def test_what_a_leg_left_is_counted_once() -> None:
    to = console(terminal=True)
    with Bars(to) as bars:
        for pending in (10, 9):
            bars.stage_started(Stage.IMAGES, "2026-01", pending, 0)
            bars.item_finished(Stage.IMAGES, "a/b#1", ItemState.DONE, "", 1.0)
            bars.stage_finished(Stage.IMAGES)
    assert "2/10" in printed(to)


def test_a_note_before_its_stage_is_no_crash() -> None:
    with Bars(console()) as bars:
        bars.note(Stage.IMAGES, "early")


def entry(stage: Stage, state: ItemState, **fields: object) -> LedgerEntry:
    return LedgerEntry.model_validate(
        {"stage": stage, "month": "2026-02", "item": "a/b#1", "state": state, "run_id": "run", **fields}
    )


def test_a_story_tells_state_reason_detail_cost_and_log() -> None:
    to = console()
    story = [
        entry(
            Stage.CLASSIFICATIONS,
            ItemState.DONE,
            detail="cache_and_reuse, easy",
            cost=Cost(tokens_in=900, dollars=0.5),
            finished_at=datetime(2026, 3, 25, 2, 3, 4, tzinfo=UTC),
        ),
        entry(
            Stage.IMAGES, ItemState.FAILED, reason="build", detail="it does not build", log_tail="gcc: error", attempt=2
        ),
    ]
    show_story(to, "a/b#1", story)
    lines = printed(to).splitlines()
    assert lines[0] == "a/b#1"
    assert lines[1].split() == ["2026-02", "classifications", "done", "2026-03-25", "02:03:04"]
    assert lines[2] == "    cache_and_reuse, easy"
    assert "attempt 1, cost {'tokens_in': 900, 'dollars': 0.5}, run run" in lines[3]
    assert lines[4].split() == ["2026-02", "images", "failed", "(build)"]
    assert lines[-1] == "gcc: error"


def test_what_is_shown_is_text_and_no_markup() -> None:
    to = console()
    failed = entry(Stage.IMAGES, ItemState.FAILED, reason=HOSTILE, detail=HOSTILE, log_tail=HOSTILE)
    show_story(to, "a/b#1", [failed])
    show_funnel(to, count_funnel("2026-02", [failed]))
    show_findings(to, [ProbeResult("hub", Health.BROKEN, HOSTILE)])
    assert printed(to).count("[/red]") == 5


def test_a_log_cannot_act_on_the_terminal() -> None:
    log = "\x1b]0;title\x07\x1b[2J\x1b[31mred\x1b[0m\r\n10 %\r20 %\x08\x1b]8;;http://x\x1b\\link\ttab ünï\x9b5n\x1b"
    assert plain(log) == "red\n10 %\n20 %link\ttab ünï5n"
    to = console()
    show_story(to, "a/b#1", [entry(Stage.IMAGES, ItemState.FAILED, detail=log, log_tail=log)])
    assert "\x1b" not in printed(to)


def test_the_funnel_shows_counts_losses_and_cost() -> None:
    to = console()
    entries = [
        entry(Stage.PULL_REQUESTS, ItemState.DONE, cost=Cost(api_points=3, api_requests=2)),
        entry(Stage.CLASSIFICATIONS, ItemState.REJECTED, reason="title"),
    ]
    asked = UsageTotal.model_validate(
        dict.fromkeys(UsageTotal.model_fields, 0)
        | {"stage": Stage.PULL_REQUESTS, "resource": "graphql", "requests": 7, "points": 9}
    )
    show_funnel(to, count_funnel("2026-02", entries, [asked]))
    text = printed(to)
    assert "Funnel of 2026-02" in text
    assert [line.split()[-2:] for line in text.splitlines() if "merged pull requests" in line] == [["1", "█" * 30]]
    assert ["classifications", "rejected", "title", "1", "a/b#1"] in [line.split() for line in text.splitlines()]
    assert "Cost of 2026-02: 9 API points in 7 requests, 0 tokens in 0 model calls, $0.00, 0.0 s of work" in text


def test_findings_are_a_line_each() -> None:
    to = console()
    show_findings(to, [ProbeResult("github", Health.OK, "answers"), ProbeResult("hub", Health.BROKEN, "does not")])
    assert [line.split() for line in printed(to).splitlines()] == [
        ["ok", "github", "answers"],
        ["broken", "hub", "does", "not"],
    ]


def test_a_wait_counts_down_behind_the_bar() -> None:
    to = console(terminal=True, width=160)
    with Bars(to) as bars:
        bars.stage_started(Stage.REPOSITORIES, "2026-02", 1, 0)
        bars.waiting(Stage.REPOSITORIES, "GitHub's limit [of] graphql requests", 754.2)
        bars._progress.refresh()
        bars.item_finished(Stage.REPOSITORIES, "discovery", ItemState.DONE, "", 1.0)
        bars.stage_finished(Stage.REPOSITORIES)
    assert "waiting 12 min 3" in printed(to)
    assert "GitHub's limit [of] graphql requests" in plain(printed(to))


def test_a_wait_and_a_warning_are_lines_where_there_are_no_bars() -> None:
    to = console()
    with Bars(to) as bars:
        bars.stage_started(Stage.REPOSITORIES, "2026-02", 1, 0)
        bars.waiting(Stage.REPOSITORIES, "GitHub's limit [of] requests", 90.0)
        bars.waiting(Stage.REPOSITORIES, "GitHub's limit [of] requests", 89.0)
        bars.warn(Stage.REPOSITORIES, "the cache [x] was damaged")
    said = printed(to)
    assert said.count("waiting 1 min 30 s, until ") == 1
    assert "GitHub's limit [of] requests" in said
    assert "repositories: the cache [x] was damaged" in said


def test_a_run_tells_of_each_stage_how_its_items_ended() -> None:
    to = console()
    show_endings(
        to,
        [
            Ending(Stage.PULL_REQUESTS, ItemKind.REPOSITORY, ItemState.DONE, "", 2),
            Ending(Stage.PULL_REQUESTS, ItemKind.PULL_REQUEST, ItemState.DONE, "", 40),
            Ending(Stage.CLASSIFICATIONS, ItemKind.PULL_REQUEST, ItemState.FAILED, "timeout", 1),
            Ending(Stage.CLASSIFICATIONS, ItemKind.PULL_REQUEST, ItemState.FAILED, "model_answer", 3),
            Ending(Stage.CLASSIFICATIONS, ItemKind.PULL_REQUEST, ItemState.REJECTED, "title", 36),
        ],
    )
    title, head, *rows = (line.split() for line in printed(to).splitlines())
    assert (" ".join(title), head) == ("How items ended", ["stage", "done", "rejected", "failed", "skipped"])
    assert rows == [["pull_requests", "42"], ["classifications", "36", "4"]]
