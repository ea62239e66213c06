from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.sources.git.mirror import MirrorCache
from formulacode_dagster.sources.offline.completion import MirrorCompletion
from tests.support.offline import engine, pull_request, windows

BARE = {"merge_commit_sha": None, "head_sha": None}


@pytest.fixture
def completion(mirrors: Path, tmp_path: Path) -> MirrorCompletion:
    return MirrorCompletion(MirrorCache(tmp_path / "cache", mirrors.as_uri()))


def test_what_a_file_does_not_tell_is_read_from_the_history(write, mirrors, completion):
    shas = engine(mirrors)
    rows = [pull_request(number, merged_at="2026-02-03T00:00:00Z", **BARE) for number in (2, 4)]
    merge, squash = windows(write(pull_requests=rows), completion=completion)["ada/engine"].pull_requests
    assert (merge.merge_commit_sha, merge.head_sha, merge.commit_count) == (shas[6], shas[5], 2)
    assert (merge.title, merge.base_ref) == ("Make 2 fast", "main")
    assert (squash.merge_commit_sha, squash.head_sha, squash.commit_count) == (shas[9], "", 0)


def test_what_a_file_tells_is_never_replaced(write, mirrors, completion):
    engine(mirrors)
    told = pull_request(2, merge_commit_sha="c" * 40, head_sha=None, base_ref="old", commit_count=9)
    (one,) = windows(write(pull_requests=[told]), completion=completion)["ada/engine"].pull_requests
    assert (one.merge_commit_sha, one.head_sha, one.base_ref, one.commit_count) == ("c" * 40, "", "old", 9)


def test_no_mirror_is_fetched_when_nothing_is_missing(write, mirrors, completion, tmp_path):
    (one,) = windows(write(pull_requests=[pull_request()]), completion=completion)["ada/engine"].pull_requests
    assert one.number == 1
    assert not (tmp_path / "cache").exists()


def test_a_pull_request_the_history_does_not_know_stays_without_its_commit(write, mirrors, completion):
    engine(mirrors)
    (one,) = windows(write(pull_requests=[pull_request(77, **BARE)]), completion=completion)["ada/engine"].pull_requests
    assert one.merge_commit_sha == ""


def test_a_mirror_that_is_not_there_fails_its_repository_alone(write, mirrors, completion):
    with pytest.raises(ItemFailure, match="ada/engine cannot be cloned"):
        windows(write(pull_requests=[pull_request(**BARE)]), completion=completion)
