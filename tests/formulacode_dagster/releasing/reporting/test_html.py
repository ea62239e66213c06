from __future__ import annotations

import re
import resource
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import pytest

from formulacode_dagster.models.attempt import AgentUse
from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.models.items import Cost
from formulacode_dagster.models.measurement import Arm, Frame, Stacks, StackTime, TaskProfile
from formulacode_dagster.models.release import ReplayNote
from formulacode_dagster.releasing.reporting.facts import ReportFacts
from formulacode_dagster.releasing.reporting.html import render_report, write_report
from tests.support.browser import look_at

HOSTILE = "<script>alert(1)</script>\"'&{{ 7 * 7 }}"


class Page(HTMLParser):
    """Text, tags, and whether every tag is closed where it should be."""

    VOID = frozenset({"meta", "img", "br"})
    INLINE = frozenset({"span", "code", "small", "b"})

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        self.text += "" if tag in self.INLINE else " "
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] != "style":
            self.text += data


def rows(page: Page) -> str:
    return re.sub(r"\s+", " ", page.text)


def test_the_report_answers_the_first_questions(facts: ReportFacts, nothing: ReportFacts) -> None:
    text = rows(Page(render_report(facts, nothing)))
    for said in (
        "FormulaCode, 2026-02",
        "released as formulacode@2026-03 at hub:owner/name 2 tasks, revision c0ffeec0ffee, 2026-03-25 02:30 UTC",
        "merged pull requests 10 100 %",
        "really faster 2 20 % 1 no_speedup",
        "a/b#1 cache_and_reuse easy faster 12.3× 11.0× – 13.0× 12.34×, 95 % from 11.00× to 13.00×"
        " 3 own_tests 2 0 1.01×",
        "a/b#3 cache_and_reuse easy unchanged 1.02× 1.00× – 1.03× 1.02×, 95 % from 1.00× to 1.03×"
        " 3 own_tests 0 0 1.01×",
        "images failed build 1 a/b#5",
        "imports failed 1 of 4 images does not import (a/b#5)",
        "declared_commit passed all",
        "images 1 of 4 pull requests failed Ada 2026-03-05 it is theirs",
        "repositories code_search 1 20 18 2 0 0 0.0 120.5 0.0",
        "pull_requests graphql 2 61 81 0 1 1 9.2 0.0 2.5",
        "2026-02 81 99 2 1 1 9.2 120.5 2.5",
    ):
        assert said in text, said
    # what is shut is what one has to see first
    assert text.index("imports") < text.index("declared_commit")


def test_the_report_tells_which_tasks_replay_and_where(facts: ReportFacts, nothing: ReportFacts) -> None:
    assert "Replays" not in render_report(facts, nothing)
    common = {
        "release": "formulacode@2026-03",
        "replayed_at": datetime(2026, 4, 1, tzinfo=UTC),
        "is_same_harness": True,
    }
    ran = {"measured": "faster", "speedup": 2.5, "low": 2.4, "high": 2.6, "machine": "another CPU, 8 cores"}
    told = {
        "a__b-1": (ReplayNote(**common, verdict="confirmed", **ran),),
        "a__b-2": (ReplayNote(**common, verdict="not_confirmed", **ran),),
        "a__b-3": (ReplayNote(**common, verdict="could_not_run", failure="image_missing", machine=""),),
    }
    text = render_report(facts.model_copy(update={"replays": told}), nothing)
    assert "1 of 2 tasks that could be replayed are confirmed by each of their replays; 1 could not be run" in text
    for part in ("a__b-2", "2.5", "another CPU, 8 cores", "image_missing", "not confirmed"):
        assert part in text


def test_the_report_draws_where_the_time_of_profiled_tasks_goes(facts: ReportFacts, nothing: ReportFacts) -> None:
    assert "Where the time goes" not in render_report(facts, nothing)
    frame = Frame(file="pkg/core.py", function=HOSTILE, line=1)
    told = Stacks(frames=(frame,), stacks=(StackTime(frames=(0,), seconds=1.0),), calls=1, seconds=1.0)
    profile = TaskProfile(
        month="2026-02",
        repository_id=1,
        number=1,
        image_digest="sha256:1",
        stacks={HOSTILE: {Arm.BASE: told, Arm.ORACLE: told}},
    )
    page = Page(render_report(facts.model_copy(update={"profiles": {"a/b#1": profile}}), nothing))
    assert page.tags.count("svg") == 2 + len(facts.measured)
    assert "script" not in page.tags
    assert "pkg/core.py:1" in page.text


def test_the_report_needs_nothing_beside_it(facts: ReportFacts, nothing: ReportFacts) -> None:
    page = Page(render_report(facts, nothing))
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    assert not [value for name, value in page.attributes if name in ("src", "href", "style")]
    (policy,) = (value for name, value in page.attributes if name == "content" and "default-src" in (value or ""))
    assert (policy or "").startswith("default-src 'none'; style-src 'unsafe-inline';")
    # an interval for each measured pull request, and a bar for each step
    assert page.tags.count("svg") == len(facts.measured)
    assert page.tags.count("meter") >= len(facts.funnel.steps)


@pytest.mark.slow
def test_the_report_can_be_read_at_every_width_in_both_schemes(
    facts: ReportFacts, nothing: ReportFacts, tmp_path: Path
) -> None:
    write_report(tmp_path, facts, nothing)
    look_at(tmp_path, ["2026-02.html"], tmp_path / "pictures")


def test_what_comes_from_outside_is_text_and_nothing_else(facts: ReportFacts, nothing: ReportFacts) -> None:
    assert facts.release is not None
    loss = facts.funnel.losses[0].model_copy(update={"reason": HOSTILE, "examples": (HOSTILE,)})
    hostile = ReportFacts(
        month=facts.month,
        funnel=facts.funnel.model_copy(update={"losses": (loss,)}),
        measured=(facts.measured[0].model_copy(update={"item": HOSTILE, "category": HOSTILE}),),
        checks=(facts.checks[1].model_copy(update={"summary": HOSTILE, "offenders": (HOSTILE,)}),),
        release=facts.release.model_copy(update={"destination": HOSTILE, "tag": HOSTILE}),
        accepted=(facts.accepted[0].model_copy(update={"accepted_by": HOSTILE, "reason": HOSTILE}),),
    )
    html = render_report(hostile, nothing)
    page = Page(html)
    assert "script" not in page.tags
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert "49" not in page.text.partition("Costs")[0].replace("2026", "")
    assert page.text.count("{{ 7 * 7 }}") >= 8


def test_the_first_month_has_no_month_before(facts: ReportFacts, nothing: ReportFacts) -> None:
    text = rows(Page(render_report(facts, nothing)))
    assert "No data on 2026-01" in text
    assert " change" not in text
    assert "+10" not in text


def test_a_month_with_one_before_says_what_changed(facts: ReportFacts) -> None:
    fewer = facts.funnel.steps[0].model_copy(update={"count": 4})
    more = facts.funnel.steps[1].model_copy(update={"count": 9})
    earlier = facts.model_copy(
        update={
            "month": "2026-01",
            "funnel": facts.funnel.model_copy(update={"steps": (fewer, more, *facts.funnel.steps[2:])}),
        }
    )
    html = render_report(facts, earlier)
    text = rows(Page(html))
    assert "Nothing is known" not in text
    assert "merged pull requests 10 4 +6 100 %" in text
    assert "candidates 7 9 -2 70 %" in text
    assert "performance PRs 6 6 60 %" in text
    assert '<span class="up">+6</span>' in html
    assert '<span class="down">-2</span>' in html


def test_a_month_of_nothing_can_be_reported(nothing: ReportFacts) -> None:
    text = rows(Page(render_report(nothing, nothing)))
    for said in ("not released", "nothing was measured", "nothing was lost", "nothing was judged"):
        assert said in text


@pytest.mark.slow
def test_a_report_is_written_whole_and_again(tmp_path: Path, facts: ReportFacts, nothing: ReportFacts) -> None:
    folder = tmp_path / "not" / "there yet"
    path = write_report(folder, facts, nothing)
    assert path == folder / "2026-02.html"
    path.write_text("an older one")
    assert write_report(folder, facts, nothing).read_text() == render_report(facts, nothing)
    assert list(folder.iterdir()) == [path]


def test_a_full_disk_is_an_outside_system_and_leaves_nothing_half_written(
    tmp_path: Path, facts: ReportFacts, nothing: ReportFacts
) -> None:
    (tmp_path / "2026-02.html").write_text("the report before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # the system's own refusal of a file beyond a size: it comes in the middle of the write, as a full disk's does
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(OutsideSystemError, match=r"disk: cannot write .*2026-02\.html.*Free some space"):
            write_report(tmp_path, facts, nothing)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [path.name for path in tmp_path.iterdir()] == ["2026-02.html"]
    assert (tmp_path / "2026-02.html").read_text() == "the report before"


def test_a_folder_that_is_none_is_named(tmp_path: Path, facts: ReportFacts, nothing: ReportFacts) -> None:
    (tmp_path / "reports").write_text("a file")
    with pytest.raises(OutsideSystemError, match="reports"):
        write_report(tmp_path / "reports", facts, nothing)


def test_agents_requests_are_shown_with_their_cost_if_any(facts: ReportFacts, nothing: ReportFacts) -> None:
    assert "Agents" not in rows(Page(render_report(facts, nothing)))
    cost = Cost(tokens_in=12345, tokens_out=67, dollars=1.5, seconds=90)
    use = AgentUse(repository_id=7, number=5, agent="agent:codex", attempts=2, held=True, cost=cost)
    text = rows(Page(render_report(facts.model_copy(update={"agents": ((HOSTILE, use),)}), nothing)))
    assert f"{HOSTILE} agent:codex 2 yes 12,345 67 1.50 1.5" in text
