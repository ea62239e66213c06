from __future__ import annotations

import asyncio
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.repository import UNKNOWN_LANGUAGE, UNKNOWN_STARS, RepositoryState
from formulacode_dagster.sources.git.changes import change_of
from formulacode_dagster.sources.git.mirror import MirrorCache
from formulacode_dagster.sources.offline.identity import derived_id
from sandbox.samples import generate
from tests.support.git_world import BareRepository, lose_object
from tests.support.intake import windows_of
from tests.support.offline import engine, found, opened, window_of, windows


def test_pull_requests_come_from_merges_and_squashes_of_the_month(mirrors):
    shas = engine(mirrors)
    window = windows(mirrors)["ada/engine"]
    assert [pull_request.number for pull_request in window.pull_requests] == [2, 3, 4]
    assert (window.count.reported, window.count.stored) == (3, 3)
    merge, squash, alone = window.pull_requests
    assert (merge.title, merge.body, merge.author) == ("Second", "Text", "bob")
    assert (merge.merge_commit_sha, merge.head_sha, merge.commit_count) == (shas[6], shas[5], 2)
    assert merge.created_at == datetime(2026, 1, 20, tzinfo=UTC)
    assert merge.merged_at == datetime(2026, 2, 1, tzinfo=UTC)
    assert (squash.title, squash.head_sha, squash.commit_count) == ("Third", shas[7], 1)
    assert (merge.base_ref, merge.changed_files, merge.labels, merge.linked_issues) == ("main", 1, (), ())
    # a squash whose branch is gone: no head, no number of commits, and nothing made up in their place
    assert (alone.merge_commit_sha, alone.head_sha, alone.commit_count) == (shas[9], "", 0)


@pytest.mark.parametrize(("month", "numbers"), [("2026-01", [1]), ("2026-03", [5]), ("2019-01", [])])
def test_the_month_is_half_open_over_the_time_of_the_landing_commit(mirrors, month, numbers):
    engine(mirrors)
    window = windows(mirrors, Month.parse(month))["ada/engine"]
    assert [pull_request.number for pull_request in window.pull_requests] == numbers


def test_what_was_derived_can_be_verified_against_the_mirror(mirrors, tmp_path):
    engine(mirrors)
    cache = MirrorCache(tmp_path / "cache", mirrors.as_uri())
    for facts in windows(mirrors)["ada/engine"].pull_requests:
        with cache.ensure(facts.repository, commits=[facts.merge_commit_sha]) as mirror:
            change, patch = change_of(mirror, facts)
            assert change.base_sha
            assert patch


def test_a_repository_is_what_keeps_a_suite_anywhere_on_its_default_branch(mirrors):
    engine(mirrors, "a/deep", config="very/deep/asv.conf.jsonc")
    engine(mirrors, "b/top", config="asv.conf.json")
    engine(mirrors, "c/none", config="asv.conf.json.bak")
    both = BareRepository(mirrors / "d/both.git")
    both.write(both.commit("Begin", "2026-01-01T00:00:00", files={"z/asv.conf.json": "{}", "b/c/asv.conf.json": "{}"}))
    rows = {row.full_name: row for row in found(mirrors)}
    assert {name: row.config_path for name, row in rows.items()} == {
        "a/deep": "very/deep/asv.conf.jsonc",
        "b/top": "asv.conf.json",
        "d/both": "z/asv.conf.json",
    }
    one = rows["b/top"]
    assert (one.id, one.stars, one.language) == (derived_id("b/top"), UNKNOWN_STARS, UNKNOWN_LANGUAGE)
    assert (one.default_branch, one.state) == ("main", RepositoryState.ACTIVE)


def test_what_is_wanted_is_found_whatever_it_holds(mirrors):
    engine(mirrors, "c/none", config="README")
    BareRepository(mirrors / "e/empty.git").write(None)
    assert found(mirrors) == ()
    rows = found(mirrors, wanted=("C/None", "e/empty", "f/absent"))
    assert [(row.full_name, row.state) for row in rows] == [
        ("c/none", RepositoryState.ACTIVE),
        ("e/empty", RepositoryState.EMPTY),
        ("f/absent", RepositoryState.VANISHED),
    ]
    assert window_of(mirrors, rows[1]).pull_requests == ()


def test_a_broken_mirror_is_named_and_fails_alone(mirrors, tmp_path):
    engine(mirrors)
    (mirrors / "b").mkdir()
    (mirrors / "b/file.git").write_text("no repository")
    (mirrors / "b/nowhere.git").symlink_to(tmp_path / "nothing")
    engine(mirrors, "b/cut")
    pack = next((mirrors / "b/cut.git").glob("objects/pack/*.pack"), None)
    for path in [pack] if pack else list((mirrors / "b/cut.git/objects").glob("??/*")):
        path.chmod(0o644)
        path.write_bytes(path.read_bytes()[:20])
    rows = {row.full_name: row for row in found(mirrors)}
    assert set(rows) == {"ada/engine", "b/file", "b/nowhere", "b/cut"}
    assert window_of(mirrors, rows.pop("ada/engine")).count.stored == 3
    for row in rows.values():
        with pytest.raises(ItemFailure, match=rf"{row.full_name}") as caught:
            window_of(mirrors, row)
        assert caught.value.kind in ("mirror_broken", "git")


def test_missing_contents_do_not_lose_the_window(mirrors):
    lines = "".join(f"line {number}\n" for number in range(20))
    made = BareRepository(mirrors / "ada/engine.git")
    root = made.commit("Begin", "2026-01-01T00:00:00", files={"asv.conf.json": "{}", "old.py": lines})
    made.commit(
        "Move (#1)", "2026-02-03T00:00:00", root, files={"asv.conf.json": "{}", "new.py": f"{lines}more\n"}, whole=True
    )
    moved = made.write()[2]
    (before,) = windows(mirrors)["ada/engine"].pull_requests
    lose_object(made.path, made.git("rev-parse", f"{moved}:new.py"))
    (after,) = windows(mirrors)["ada/engine"].pull_requests
    assert (before.changed_files, after.changed_files) == (1, 2)
    assert after == before.model_copy(update={"changed_files": 2})


def test_a_link_to_a_mirror_is_a_mirror(mirrors, tmp_path):
    engine(tmp_path / "elsewhere", "x/y")
    (mirrors / "ada").mkdir()
    (mirrors / "ada/engine.git").symlink_to(tmp_path / "elsewhere/x/y.git")
    assert windows(mirrors)["ada/engine"].count.stored == 3


def test_thousands_of_tags_and_branches_change_nothing(mirrors):
    shas = engine(mirrors)
    names = [f"refs/tags/v{number}" for number in range(5000)] + [f"refs/heads/b{number}" for number in range(500)]
    (mirrors / "ada/engine.git/packed-refs").write_text("".join(f"{shas[1]} {name}\n" for name in names))
    assert [pull_request.number for pull_request in windows(mirrors)["ada/engine"].pull_requests] == [2, 3, 4]


def test_a_mirror_that_went_away_fails_by_name(mirrors):
    engine(mirrors)
    engine(mirrors, "b/other")
    rows = found(mirrors)
    shutil.rmtree(mirrors / "b")
    with pytest.raises(ItemFailure, match="b/other is not in the folder of mirrors") as caught:
        window_of(mirrors, rows[1])
    assert caught.value.kind == "not_in_source"


def test_the_side_file_tells_labels_issues_and_stars(mirrors):
    engine(mirrors)
    issue = {"number": 9, "title": "Slow", "body": "old", "author": "eve", "created_at": "2026-01-01T00:00:00Z"}
    edits = [
        {"edited_at": "2026-01-10T00:00:00Z", "body": "before the merge"},
        {"edited_at": "2026-02-10T00:00:00Z", "body": "the solution"},
    ]
    later = {"number": 10, "title": "Later", "created_at": "2026-02-10T00:00:00Z"}
    told = {
        "id": 77,
        "stars": 900,
        "former_names": ["ada/motor"],
        "pull_requests": [
            {"number": 2, "labels": ["perf", "a"], "body": "Fixes #9, closes #10", "author": "zoe"},
        ],
        "issues": [{**issue, "edits": edits}, later],
    }
    (mirrors / "sandbox.json").write_text(json.dumps({"repositories": {"ada/engine": told}}))
    (row,) = found(mirrors)
    assert (row.id, row.stars, row.language, row.aliases) == (77, 900, UNKNOWN_LANGUAGE, ("ada/motor",))
    one = windows(mirrors)["ada/engine"].pull_requests[0]
    assert (one.labels, one.author, one.repository_id) == (("a", "perf"), "zoe", 77)
    assert [(issue.number, issue.body, issue.author) for issue in one.linked_issues] == [(9, "before the merge", "eve")]


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "is malformed"), ('{"repositories": {"no/body": {}}}', "sandbox.json in .* tells of no/body")],
)
def test_a_side_file_that_cannot_be_is_refused(mirrors, text, said):
    engine(mirrors)
    (mirrors / "sandbox.json").write_text(text)
    with pytest.raises(ConfigurationError, match=said):
        found(mirrors)


@pytest.mark.slow
def test_a_folder_with_mirrors_and_files_is_refused(mirrors):
    engine(mirrors)
    (mirrors / "counts.csv").write_text("x")
    with pytest.raises(ConfigurationError, match=r"holds both mirrors and counts\.csv"):
        found(mirrors)


@pytest.mark.slow
def test_every_pull_request_of_the_samples_is_found_without_a_server(tmp_path: Path):
    samples = generate(tmp_path / "samples")
    months = [Month.parse("2026-01"), Month.parse("2026-02")]

    async def ask() -> dict[str, tuple[str, str]]:
        async with opened(samples.folder) as source:
            # a fork has the pull requests of its parent's history too, and is not tracked
            rows = [row for row in await source.discover(months[0]) if row.state is not RepositoryState.FORK]
            taken = await asyncio.gather(*(windows_of(source, month, rows) for month in months))
            windows = [window for of_month in taken for window in of_month]
            return {
                pull_request.item: (pull_request.month, pull_request.merge_commit_sha)
                for window in windows
                for pull_request in window.pull_requests
            }

    expected = {
        pull_request.item: (pull_request.month, pull_request.merge_commit_sha)
        for pull_request in samples.pull_requests
        if pull_request.month in {month.key for month in months}
        and not pull_request.item.startswith("dmoreau/gridpath")
    }
    assert asyncio.run(ask()) == expected
