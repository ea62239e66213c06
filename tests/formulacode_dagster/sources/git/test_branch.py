"""The commits of a pull request, from a mirror."""

from __future__ import annotations

from pathlib import Path

from formulacode_dagster.selection.statements.stage import commits_of
from formulacode_dagster.sources.git.branch import branch_commits
from formulacode_dagster.sources.git.history import Mirror
from tests.records import make_merged, make_pull_request
from tests.support.git_world import git


def commit(folder: Path, subject: str, name: str, mail: str) -> str:
    who = ("-c", f"user.name={name}", "-c", f"user.email={mail}")
    git(folder, *who, "commit", "--quiet", "--allow-empty", "--message", subject)
    return git(folder, "rev-parse", "HEAD")


def test_a_branchs_commits_and_squash_are_read_with_all_authors(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    base = commit(tmp_path, "begin", "Old Hand", "old@acme.example")
    git(tmp_path, "switch", "--quiet", "--create", "fast")
    commit(tmp_path, "try a table", "Jane Doe", "12+jdoe@users.noreply.github.com")
    head = commit(tmp_path, "format", "robot[bot]", "robot@acme.example")
    git(tmp_path, "switch", "--quiet", "main")
    squash = commit(tmp_path, "Faster (#7)", "GitHub", "noreply@github.com")
    commit(tmp_path, "later", "Mark", "mark@acme.example")
    with Mirror("acme/wheels", tmp_path / ".git") as mirror:
        assert branch_commits(mirror, base, ("f" * 40, "")) == []
        facts = make_merged(head_sha=head, merge_commit_sha=squash)
        commits = commits_of(mirror, make_pull_request(facts, base_sha=base))
    by_message = {each.message: each.people for each in commits}
    assert by_message == {
        "Faster (#7)": (),
        "format": (),
        "try a table": ("Jane Doe", "12+jdoe@users.noreply.github.com", "jdoe"),
    }
    assert {each.sha for each in commits} >= {head, squash}
