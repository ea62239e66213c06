"""JSON of users, repositories and files. Field names are GitHub's; rarely read ones are left out."""

from __future__ import annotations

from typing import Any

from formulacode_dagster.sources.git.log import GHOST
from sandbox.github.changes import FileChange
from sandbox.github.served_folder import ServedRepository
from sandbox.github.threads import stamp


def user_json(login: str | None) -> dict[str, Any]:
    """`simple-user`; a deleted account shows as `ghost`."""
    return {"login": login or GHOST}


def repository_json(served: ServedRepository) -> dict[str, Any]:
    """`minimal-repository`: the form in lists and search results."""
    return {
        "id": served.id,
        "node_id": served.node_id,
        "full_name": served.name,
        "private": served.facts.is_private,
        "description": served.facts.description or None,
        "fork": served.facts.is_fork,
    }


def full_repository_json(served: ServedRepository) -> dict[str, Any]:
    """`full-repository`."""
    tracker, facts = served.tracker(), served.facts
    opened = sum(thread.closed_at is None for thread in tracker.threads())
    return repository_json(served) | {
        "pushed_at": stamp(tracker.last_commit) or "2008-01-01T00:00:00Z",
        "stargazers_count": facts.stars,
        "language": facts.language or None,
        "archived": facts.is_archived,
        "default_branch": tracker.default_branch,
        "open_issues_count": opened,
    }


def file_json(change: FileChange) -> dict[str, Any]:
    """`diff-entry`, without its patch."""
    shown: dict[str, Any] = {
        "sha": change.blob,
        "filename": change.path,
        "status": change.status,
        "additions": change.additions,
        "deletions": change.deletions,
    }
    return shown | ({"previous_filename": change.old_path} if change.old_path else {})
