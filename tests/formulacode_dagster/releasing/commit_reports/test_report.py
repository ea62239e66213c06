"""The page of a commit."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from xml.etree import ElementTree

from formulacode_dagster.models.links import Link, LinkWalk, ThreadComment
from formulacode_dagster.models.pull_request import ChangedFile
from formulacode_dagster.releasing.commit_reports.codecov import FileCoverage
from formulacode_dagster.releasing.commit_reports.plots import MOST_POINTS, step_plot
from formulacode_dagster.releasing.commit_reports.report import AffectedSeries, CommitReport, covered

AT = datetime(2026, 2, 3, 4, 5, tzinfo=UTC)
FILES = (ChangedFile(path="tiny/core.py", status="M", additions=3, deletions=1), ChangedFile(path="a|b.py", status="A"))
COVERAGE = {
    "tiny/core.py": FileCoverage(path="tiny/core.py", lines=10, hits=6),
    "tiny/other.py": FileCoverage(path="tiny/other.py", lines=90, hits=90),
}
SERIES = AffectedSeries(
    "bench.time_it(10)", '{"python": "3.12"}', "seconds", 2.0, 1.0, 0.5, (0.4, None), "improvement", "x/0.svg"
)
WALK = LinkWalk(
    title="Cache lookups",
    body="# Not a heading of ours\n<script>",
    links=tuple(
        Link(repository="acme/tiny", number=number, title="Slow | very", body="It is slow", created_at=AT)
        for number in range(1, 63)
    ),
    later=(ThreadComment(author="ada", body="Twice as fast", created_at=AT),),
    left_out=1,
)


def report(**fields: object) -> CommitReport:
    plain: dict[str, object] = {
        "repository": "acme/tiny", "sha": "a" * 40, "before_sha": "b" * 40, "subject": "Cache <b>lookups</b>",
        "body": "Since they are slow.", "author": "Ada", "committed_at": AT, "files": FILES, "coverage": COVERAGE,
        "pull_request": 7, "walk": WALK, "improved": 2, "regressed": 0, "series": (SERIES,), **fields,
    }  # fmt: skip
    return CommitReport(**plain)


def test_the_page_has_commit_pull_request_discussion_issues_and_series():
    text = report().text
    assert text.startswith("# Cache \\<b\\>lookups\\</b\\>\n")
    assert re.findall(r"^#+ .*", text, re.M)[1:5] == [
        "## Files",
        "## Pull request: Cache lookups",
        "### Discussion",
        "## Linked issues",
    ]
    assert "> Since they are slow." in text
    assert "> Twice as fast" in text
    assert "| bench.time_it(10)<br>" in text
    assert "0.5 (0.4 to –) improvement | ![](x/0.svg) |" in text


def test_words_of_others_are_quoted_and_break_no_table():
    text = report().text
    assert "> # Not a heading of ours\n> &lt;script>" in text
    assert "### acme/tiny#1: Slow \\| very" in text
    assert "| `a\\|b.py` | 0 | 0 |" in text


def test_a_file_that_the_report_lacks_has_no_figure_and_not_the_commits():
    lines = {line.split(" | ")[0]: line for line in report().text.splitlines() if line.startswith("| `")}
    assert lines["| `tiny/core.py`"].endswith("| 6 of 10, 60% |")
    assert lines["| `a\\|b.py`"].endswith("| – |")
    assert covered(FILES, COVERAGE) == (6, 10)
    assert covered(FILES, None) == (0, 0)


def test_most_issues_are_bounded_and_the_others_counted():
    text = report().text
    assert text.count("### acme/tiny#") == 60
    assert "3 more are left out" in text


def test_tokens_grow_with_the_page_and_nobody_asked_is_nothing_said():
    bare = report(walk=None, coverage=None)
    assert bare.tokens < report().tokens
    assert bare.tokens == round(len(bare.text.encode()) / 4)
    assert "Pull request:" not in bare.text


def test_a_picture_is_small_well_formed_and_has_the_step():
    points = [(revision, 2.0 if revision < 5000 else 1.0) for revision in range(10_000)]
    svg = step_plot(points, before_revision=4999, after_revision=5000, before=2.0, after=1.0)
    root = ElementTree.fromstring(svg)  # noqa: S314 - our own
    assert len(root) == 3
    assert root[0].attrib["d"].count("M") <= MOST_POINTS
    levels = re.findall(r"M([\d.]+) ([\d.]+)H([\d.]+)", root[1].attrib["d"])
    # slower is higher up: the level falls at the step, in the middle
    assert float(levels[0][1]) < float(levels[1][1])
    assert abs(float(levels[1][0]) - 160) < 1


def test_a_series_of_one_value_or_of_what_is_not_positive_has_a_picture():
    for points, before, after in (([], 0.0, -1.0), ([(1, 0.0)], 0.0, 0.0), ([(1, -1.0), (2, 3.0)], -1.0, float("nan"))):
        ElementTree.fromstring(step_plot(points, before_revision=1, after_revision=2, before=before, after=after))  # noqa: S314
