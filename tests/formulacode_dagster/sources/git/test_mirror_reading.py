"""Reads from a mirror without a checkout: files, the anchor, later commits."""

from __future__ import annotations

import os
from datetime import timedelta

import pytest

from formulacode_dagster.models.errors import ItemFailure


def test_files_are_read_and_listed_without_a_checkout(origin, mirror_of):
    odd = os.fsdecode(b"docs/odd \xff\n.txt")
    origin.write({odd: "odd", "bin/tool": b"\0\n\r"})
    (origin.work / "link").symlink_to("a.py")
    origin.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendor")
    head = origin.commit("Files")
    mirror = mirror_of(head)
    assert mirror.list(head, "docs") == mirror.list(head, "docs/") == ["docs/c.txt", odd]
    assert set(mirror.list(head)) == {"a.py", "b.py", "bin/tool", "docs/c.txt", odd, "link"}
    assert mirror.read(head, odd) == b"odd"
    assert mirror.read(head, "bin/tool") == b"\0\n\r"
    assert mirror.read(head, "link") == b"a.py"
    assert [mirror.read(head, path) for path in ("docs", "nothing", "vendor", "a.py/b", "")] == [None] * 5
    assert mirror.list(head, "nothing") == []


def test_reading_at_an_unknown_commit_is_not_an_absent_file(mirror_of):
    with pytest.raises(ItemFailure) as caught:
        mirror_of().read("f" * 40, "a.py")
    assert caught.value.kind == "commit_missing"


def test_the_anchor_is_the_last_commit_before_a_moment_on_the_main_line(origin, mirror_of):
    first = origin.sha()
    second = origin.commit("Second", hours=24)
    moment = origin.moment
    third = origin.commit("Third", hours=24)
    mirror = mirror_of(third)
    assert mirror.anchor(third, moment + timedelta(seconds=1)) == second
    assert mirror.anchor(third, moment) == first
    assert mirror.anchor(third, moment + timedelta(days=9)) == third
    assert mirror.anchor(third, moment - timedelta(days=900)) == first


def test_later_commits_of_the_main_line_are_found_by_what_they_change(origin, mirror_of):
    first = origin.git("rev-parse", "HEAD")
    origin.write({"benchmarks/x.py": "x\n"})
    second = origin.commit("Add a benchmark")
    origin.write({"a.py": "other\n"})
    origin.commit("Change something else")
    origin.git("checkout", "--quiet", "-b", "side")
    origin.write({"benchmarks/deep/y.py": "y\n"})
    origin.commit("Add another on a branch")
    origin.git("checkout", "--quiet", "-")
    origin.git("merge", "--quiet", "--no-ff", "-m", "Merge the branch", "side")
    merge = origin.git("rev-parse", "HEAD")
    origin.publish()
    mirror = mirror_of(merge)
    assert mirror.later(first, "benchmarks/**") == (second, merge)
    assert mirror.later(second, "benchmarks/**") == (merge,)
    assert mirror.later(first, "**/asv.conf.json") == ()


def test_words_are_looked_for_in_all_text_at_a_commit(origin, mirror_of):
    origin.write({"x.py": "key_index = held.keys()\n", "y.bin": b"\0only_binary\n"})
    head = origin.commit("Words")
    origin.write({"z.py": "later_name = 1\n"})
    mirror = mirror_of(origin.commit("Later"))
    words = {"key_index", "keys", "index", "only_binary", "later_name", "nowhere"}
    assert mirror.words_at(head, words) == {"key_index", "keys"}
    assert mirror.words_at(head, ["nowhere"]) == mirror.words_at(head, []) == frozenset()
