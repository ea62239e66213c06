"""JSON of users, repositories, labels, commits and files. Field names are GitHub's; rarely read ones are left out."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from formulacode_dagster.git.log import GHOST, Commit, from_epoch, login_of
from sandbox.github.changes import FileChange
from sandbox.github.context import WEB, Asked, user_node_id
from sandbox.github.library import Shelf
from sandbox.github.node_ids import Kind, node_id, stable_id


def stamp(moment: datetime | None) -> str | None:
    """A moment as GitHub writes it."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ") if moment else None


def user_json(asked: Asked, login: str | None) -> dict[str, Any]:
    """`simple-user`; a deleted account shows as `ghost`."""
    name = login or GHOST
    return {
        "login": name,
        "id": stable_id("user", name.lower()),
        "node_id": user_node_id(name),
        "url": f"{asked.url}/users/{name}",
        "html_url": f"{WEB}/{name}",
        "type": "Bot" if name.endswith("[bot]") else "User",
        "site_admin": False,
    }


def repository_json(asked: Asked, shelf: Shelf) -> dict[str, Any]:
    """`minimal-repository`: what lists and search results hold."""
    return {
        "id": shelf.id,
        "node_id": shelf.node_id,
        "name": shelf.short_name,
        "full_name": shelf.name,
        "private": shelf.facts.is_private,
        "owner": user_json(asked, shelf.owner),
        "html_url": f"{WEB}/{shelf.name}",
        "description": shelf.facts.description or None,
        "fork": shelf.facts.is_fork,
        "url": f"{asked.url}/repos/{shelf.name}",
    }


def full_repository_json(asked: Asked, shelf: Shelf) -> dict[str, Any]:
    """`full-repository`."""
    tracker, facts = shelf.tracker(), shelf.facts
    opened = sum(one.closed_at is None for one in tracker.threads())
    return repository_json(asked, shelf) | {
        "created_at": stamp(tracker.first_commit) or "2008-01-01T00:00:00Z",
        "updated_at": stamp(tracker.last_commit) or "2008-01-01T00:00:00Z",
        "pushed_at": stamp(tracker.last_commit) or "2008-01-01T00:00:00Z",
        "clone_url": f"{WEB}/{shelf.name}.git",
        "size": shelf.size_kb(),
        "stargazers_count": facts.stars,
        "watchers_count": facts.stars,
        "language": facts.language or None,
        "archived": facts.is_archived,
        "disabled": False,
        "visibility": "private" if facts.is_private else "public",
        "default_branch": tracker.default_branch,
        "open_issues_count": opened,
        "has_issues": True,
    }


def label_json(shelf: Shelf, name: str) -> dict[str, Any]:
    """A label."""
    return {
        "id": stable_id("label", shelf.id, name.lower()),
        "node_id": node_id(Kind.LABEL, shelf.id, stable_id("label", name.lower())),
        "name": name,
        "color": "ededed",
        "default": False,
        "description": None,
    }


def commit_json(asked: Asked, shelf: Shelf, commit: Commit) -> dict[str, Any]:
    """`commit`, without its files."""
    url = f"{asked.url}/repos/{shelf.name}/commits/{commit.sha}"
    author = login_of(commit.author, commit.author_email)
    committer = login_of(commit.committer, commit.committer_email)
    words = [int(commit.sha[i : i + 8], 16) for i in range(0, 40, 8)]
    return {
        "sha": commit.sha,
        "node_id": node_id(Kind.COMMIT, shelf.id, *words),
        "url": url,
        "html_url": f"{WEB}/{shelf.name}/commit/{commit.sha}",
        "commit": {
            "author": _signature(commit.author, commit.author_email, commit.authored),
            "committer": _signature(commit.committer, commit.committer_email, commit.committed),
            "message": commit.message,
        },
        "author": user_json(asked, author) if author else None,
        "committer": user_json(asked, committer) if committer else None,
        "parents": [{"sha": sha, "url": f"{asked.url}/repos/{shelf.name}/commits/{sha}"} for sha in commit.parents],
    }


def file_json(asked: Asked, shelf: Shelf, sha: str, change: FileChange) -> dict[str, Any]:
    """`diff-entry`, without its patch."""
    shown: dict[str, Any] = {
        "sha": change.blob,
        "filename": change.path,
        "status": change.status,
        "additions": change.additions,
        "deletions": change.deletions,
        "changes": change.additions + change.deletions,
        "contents_url": f"{asked.url}/repos/{shelf.name}/contents/{change.path}?ref={sha}",
    }
    return shown | ({"previous_filename": change.old_path} if change.old_path else {})


def _signature(name: str, email: str, seconds: int) -> dict[str, str | None]:
    return {"name": name, "email": email, "date": stamp(from_epoch(seconds))}
