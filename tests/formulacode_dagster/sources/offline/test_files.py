from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import UNKNOWN_LANGUAGE, UNKNOWN_STARS, RepositoryState
from tests.support.intake import windows_of
from tests.support.offline import FEBRUARY, SHA, found, opened, pull_request, window_of, windows

ISSUE = {"repository": "ada/engine", "number": 7, "title": "Slow", "created_at": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_every_column_is_read_in_every_format(write, ending):
    folder = write(
        ending,
        repositories=[
            {
                "full_name": "ada/engine",
                "id": 12,
                "node_id": "R_12",
                "aliases": ["ada/old"],
                "state": "archived",
                "archived_at": "2026-02-20T00:00:00+00:00",
                "default_branch": "trunk",
                "stars": 700,
                "language": "Cython",
                "description": "An engine, and more",
                "size_kb": 9,
                "config_path": "asv.conf.json",
            }
        ],
        pull_requests=[
            pull_request(
                3,
                repository="ada/old",
                body='Line one\r\nline "two", and 😀\n',
                author="bob",
                labels=["perf", "a,b"],
                created_at="2026-01-03T04:05:06+01:00",
                commit_count=4,
                changed_files=2,
                linked_issues=[ISSUE],
            )
        ],
    )
    (row,) = found(folder)
    assert (row.id, row.node_id, row.aliases, row.state) == (12, "R_12", ("ada/old",), RepositoryState.ARCHIVED)
    assert (row.archived_at, row.stars, row.language, row.size_kb) == (
        datetime(2026, 2, 20, tzinfo=UTC),
        700,
        "Cython",
        9,
    )
    (one,) = windows(folder)["ada/engine"].pull_requests
    assert (one.item, one.repository_id, one.month) == ("ada/engine#3", 12, "2026-02")
    assert (one.body, one.author, one.labels) == ('Line one\r\nline "two", and 😀\n', "bob", ("perf", "a,b"))
    assert one.created_at == datetime(2026, 1, 3, 3, 5, 6, tzinfo=UTC)
    assert (one.base_ref, one.commit_count, one.changed_files) == ("trunk", 4, 2)
    assert [(issue.number, issue.title, issue.body) for issue in one.linked_issues] == [(7, "Slow", "")]


def test_a_month_is_half_open_and_other_months_are_not_used(write):
    edges = {
        1: "2026-01-31T23:59:59.999999Z",
        2: "2026-02-01T00:00:00Z",
        3: "2026-02-28T23:59:59.999999Z",
        4: "2026-03-01T00:00:00Z",
        5: "2026-03-01T00:30:00+01:00",
    }
    rows = [pull_request(number, merged_at=moment) for number, moment in edges.items()]
    folder = write(pull_requests=[*rows, pull_request(6, merged_at="2025-01-01T00:00:00Z", number_="not looked at")])
    (folder / "pull_requests.jsonl").write_text(
        (folder / "pull_requests.jsonl").read_text().replace("number_", "body"),
    )
    window = windows(folder)["ada/engine"]
    assert [pull_request.number for pull_request in window.pull_requests] == [2, 3, 5]
    assert (window.count.reported, window.count.stored) == (3, 3)
    assert windows(folder, Month.parse("2020-01"))["ada/engine"].pull_requests == ()


@pytest.mark.parametrize("ending", ["jsonl", "csv", "parquet"])
def test_an_empty_month_is_complete_and_empty(write, ending):
    folder = write(ending, pull_requests=[pull_request(merged_at="2026-01-02T00:00:00Z")])
    window = windows(folder)["ada/engine"]
    assert (window.pull_requests, window.count.reported) == ((), 0)


def test_tables_may_have_different_formats(write):
    write("csv")
    folder = write("parquet", repositories=None, pull_requests=[pull_request()])
    folder = write("jsonl", repositories=None, counts=[{"repository": "ada/engine", "month": "2026-02", "reported": 1}])
    assert windows(folder)["ada/engine"].count.stored == 1


def test_pull_requests_alone_name_their_repositories_of_any_month(write):
    rows = [pull_request(1), pull_request(2, repository="bob/tool", merged_at="2025-05-05T00:00:00Z")]
    folder = write(repositories=None, pull_requests=rows)
    taken = windows(folder / "pull_requests.jsonl")
    assert {name: window.count.stored for name, window in taken.items()} == {"ada/engine": 1, "bob/tool": 0}


def test_repositories_alone_cannot_give_windows(write):
    folder = write()
    (row,) = found(folder)
    with pytest.raises(ConfigurationError, match=r"contains only repositories.*pull_requests\.parquet"):
        window_of(folder, row)


def test_what_is_not_told_is_unknown_and_not_zero(write):
    (row,) = found(write())
    assert (row.stars, row.language, row.state) == (UNKNOWN_STARS, UNKNOWN_LANGUAGE, RepositoryState.ACTIVE)
    assert row.id < 0


def test_a_repository_that_is_wanted_and_not_there_has_vanished(write):
    rows = found(write(repositories=[{"full_name": "ada/engine", "aliases": ["ada/old"]}]), wanted=("b/b", "Ada/OLD"))
    assert [(row.full_name, row.state) for row in rows] == [
        ("ada/engine", RepositoryState.ACTIVE),
        ("b/b", RepositoryState.VANISHED),
    ]


def test_a_row_of_another_month_is_another_months(write):
    folder = write(
        repositories=[
            {"full_name": "ada/engine", "month": "2026-01", "stars": 1},
            {"full_name": "ada/engine", "month": "2026-02", "stars": 2},
        ]
    )
    assert [row.stars for row in found(folder)] == [2]
    assert found(folder, Month.parse("2026-03")) == ()


def test_a_repository_the_files_do_not_name_fails_by_name(write):
    folder = write(pull_requests=[pull_request()])
    (row,) = found(folder)
    stranger = row.model_copy(update={"full_name": "bob/tool"})
    with pytest.raises(ItemFailure, match="bob/tool is in none of") as caught:
        window_of(folder, stranger)
    assert caught.value.kind == "not_in_source"
    renamed = row.model_copy(update={"full_name": "bob/tool", "aliases": ("ada/engine",), "id": 99})
    (one,) = window_of(folder, renamed).pull_requests
    assert (one.repository, one.repository_id) == ("bob/tool", 99)


@pytest.mark.parametrize("reported", [0, 2])
def test_a_short_or_long_export_is_noticed_by_its_counts(write, reported):
    counts = [
        {"repository": "ada/engine", "month": "2026-02", "reported": reported},
        {"repository": "ada/engine", "month": "2026-01", "reported": 9},
    ]
    folder = write(pull_requests=[pull_request()], counts=counts)
    with pytest.raises(ItemFailure, match=f"holds 1 of it.*says {reported}") as caught:
        windows(folder)
    assert caught.value.kind == "incomplete"


def test_windows_asked_for_at_once_read_the_file_once(write, monkeypatch):
    names = [f"ada/r{number}" for number in range(20)]
    folder = write(
        repositories=[{"full_name": name} for name in names],
        pull_requests=[pull_request(1, repository=name) for name in names],
    )
    reads: list[Path] = []
    before = Path.open

    def count(self: Path, *arguments: object, **more: object) -> object:
        reads.append(self)
        return before(self, *arguments, **more)

    monkeypatch.setattr(Path, "open", count)
    assert sum(window.count.stored for window in windows(folder).values()) == len(names)
    # once for its first two bytes, once for all
    assert len([path for path in reads if path.name == "pull_requests.jsonl"]) == 2


def test_a_window_may_be_asked_for_again_and_is_the_same(write):
    folder = write(pull_requests=[pull_request(2), pull_request(1)])

    async def twice() -> None:
        async with opened(folder) as intake:
            (row,) = await intake.discover(FEBRUARY)
            (first,), (second,) = [await windows_of(intake, FEBRUARY, [row]) for _ in range(2)]
            assert first == second
            assert [pull_request.number for pull_request in first.pull_requests] == [1, 2]

    asyncio.run(twice())


def test_sha_of_the_row_is_taken_as_it_is(write):
    (one,) = windows(write(pull_requests=[pull_request(head_sha="b" * 40)]))["ada/engine"].pull_requests
    assert (one.merge_commit_sha, one.head_sha) == (SHA, "b" * 40)
