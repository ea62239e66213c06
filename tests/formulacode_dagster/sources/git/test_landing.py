from __future__ import annotations

import pytest

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.pull_request import MergeKind
from formulacode_dagster.sources.git.changes import change_of
from formulacode_dagster.sources.git.landing import wanted_commits


def two_commits_on_a_branch(origin) -> list[str]:
    origin.branch("feature")
    origin.write({"a.py": "one\n2\nthree\n"})
    first = origin.commit("First step", author="Bob <bob@example.org>")
    origin.write({"new.py": "x = 1\n"})
    second = origin.commit("Second step", author="Bob <bob@example.org>")
    return [first, second]


def advance_main(origin) -> str:
    origin.git("checkout", "--quiet", "main")
    origin.write({"b.py": "bb\n"})
    return origin.commit("Something else")


def test_a_merge_is_based_on_its_first_parent(origin, mirror_of):
    head = two_commits_on_a_branch(origin)[-1]
    base = advance_main(origin)
    origin.git("merge", "--quiet", "--no-ff", "-m", "Looks like a squash (#9)", "feature")
    merge = origin.sha()
    change, patch = change_of(mirror_of(merge), origin.facts(merge, head_sha=head, commit_count=2, changed_files=2))
    assert (change.merge_kind, change.base_sha) == (MergeKind.MERGE, base)
    assert b"new.py" in patch
    assert b"b.py" not in patch


def test_a_reversed_merge_is_based_on_the_branchs_other_parent(origin, mirror_of):
    head = two_commits_on_a_branch(origin)[-1]
    base = advance_main(origin)
    origin.git("checkout", "--quiet", "feature")
    origin.git("merge", "--quiet", "--no-ff", "-m", "Merge main", "main")
    merge = origin.sha()
    origin.git("checkout", "--quiet", "-B", "main", merge)
    change, _ = change_of(mirror_of(merge), origin.facts(merge, head_sha=head, commit_count=2))
    assert (change.merge_kind, change.base_sha) == (MergeKind.MERGE, base)


def squash(origin) -> str:
    origin.git("merge", "--quiet", "--squash", "feature")
    return origin.commit("Both steps", author="Bob <bob@example.org>")


@pytest.mark.parametrize("head_known", [True, False])
def test_a_squash_of_several_commits_is_based_on_its_parent(origin, cache, head_known):
    head = two_commits_on_a_branch(origin)[-1]
    advance_main(origin)
    base = advance_main_again(origin)
    merge = squash(origin)
    origin.publish(number=7, head=head)
    with cache.ensure("demo/project", commits=[merge, *([head] if head_known else [])]) as mirror:
        if not head_known:
            head = "0" * 40
        change, _ = change_of(mirror, origin.facts(merge, head_sha=head, commit_count=2, changed_files=2))
    assert (change.merge_kind, change.base_sha) == (MergeKind.SQUASH, base)


def advance_main_again(origin) -> str:
    origin.write({"b.py": "bbb\n"})
    return origin.commit("Something else again")


def rebase(origin, commits: list[str]) -> str:
    origin.moment = origin.moment.replace(hour=(origin.moment.hour + 1) % 24)
    for sha in commits:
        origin.git("cherry-pick", sha)
    return origin.sha()


@pytest.mark.parametrize("head_known", [True, False])
def test_a_rebase_of_several_commits_is_based_below_the_first_of_them(origin, cache, head_known):
    commits = two_commits_on_a_branch(origin)
    base = advance_main(origin)
    merge = rebase(origin, commits)
    assert merge != commits[-1]
    origin.publish(number=7, head=commits[-1])
    with cache.ensure("demo/project", commits=[merge, *(commits[-1:] if head_known else [])]) as mirror:
        head = commits[-1] if head_known else "0" * 40
        change, patch = change_of(mirror, origin.facts(merge, head_sha=head, commit_count=2, changed_files=2))
    assert (change.merge_kind, change.base_sha) == (MergeKind.REBASE, base)
    assert {file.path for file in change.files} == {"a.py", "new.py"}
    assert patch.count(b"diff --git") == 2


def test_two_squashes_in_a_row_are_not_taken_for_a_rebase(origin, cache):
    head = two_commits_on_a_branch(origin)[-1]
    advance_main(origin)
    # The commit below the squash has the very message and author of one on the branch, and is not the branch's.
    base = advance_main_again(origin)
    merge = squash(origin)
    origin.publish(number=7, head=head)
    with cache.ensure("demo/project", commits=[merge, head]) as mirror:
        change, _ = change_of(mirror, origin.facts(merge, head_sha=head, commit_count=3, changed_files=2))
    assert change.base_sha == base


def test_a_rebase_that_drops_the_branch_s_merges_of_main_finds_its_base(origin, cache):
    first, second = two_commits_on_a_branch(origin)
    base = advance_main(origin)
    origin.git("checkout", "--quiet", "feature")
    origin.git("merge", "--quiet", "--no-ff", "-m", "Merge main into feature", "main")
    head = origin.sha()
    origin.git("checkout", "--quiet", "main")
    merge = rebase(origin, [first, second])
    origin.publish(number=7, head=head)
    with cache.ensure("demo/project", commits=[merge, head]) as mirror:
        change, _ = change_of(mirror, origin.facts(merge, head_sha=head, commit_count=3, changed_files=2))
    assert (change.merge_kind, change.base_sha) == (MergeKind.REBASE, base)


def test_heads_are_wanted_only_where_they_tell_something(origin):
    one = origin.facts("1" * 40, head_sha="a" * 40, commit_count=1)
    two = origin.facts("2" * 40, head_sha="b" * 40, commit_count=2)
    assert wanted_commits([one, two, two]) == ("1" * 40, "2" * 40, "b" * 40)


def test_a_branch_pushed_as_it_is_starts_where_its_commits_do(origin, mirror_of):
    base = origin.sha("main")
    merge = two_commits_on_a_branch(origin)[-1]
    origin.git("checkout", "--quiet", "-B", "main", merge)
    change, _ = change_of(mirror_of(merge), origin.facts(merge, head_sha=merge, commit_count=2))
    assert (change.merge_kind, change.base_sha) == (MergeKind.REBASE, base)


def test_a_pushed_branch_that_ends_in_a_merge_of_main_is_based_on_main(origin, mirror_of):
    two_commits_on_a_branch(origin)
    base = advance_main(origin)
    origin.git("checkout", "--quiet", "feature")
    origin.git("merge", "--quiet", "--no-ff", "-m", "Merge main into feature", "main")
    merge = origin.sha()
    origin.git("checkout", "--quiet", "-B", "main", merge)
    change, _ = change_of(mirror_of(merge), origin.facts(merge, head_sha=merge, commit_count=3))
    assert change.base_sha == base
    assert {file.path for file in change.files} == {"a.py", "new.py"}


def test_a_merge_commit_that_is_not_in_the_mirror_is_a_failure_of_its_own(origin, mirror_of):
    with pytest.raises(ItemFailure, match="is not in the mirror") as caught:
        change_of(mirror_of("f" * 40), origin.facts("f" * 40))
    assert caught.value.kind == "commit_missing"


def test_a_pull_request_without_a_merge_commit_is_not_an_empty_one(origin, mirror_of):
    with pytest.raises(ItemFailure) as caught:
        change_of(mirror_of(), origin.facts(""))
    assert caught.value.kind == "commit_missing"
