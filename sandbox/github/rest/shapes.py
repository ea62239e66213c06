"""JSON of users, repositories and files. Field names are GitHub's; rarely read ones are left out."""

from __future__ import annotations

from typing import Any

from formulacode_dagster.git.log import GHOST
from sandbox.github.changes import FileChange
from sandbox.github.context import WEB, RequestContext
from sandbox.github.node_ids import stable_id
from sandbox.github.served_folder import ServedRepository
from sandbox.github.threads import stamp


def user_json(asked: RequestContext, login: str | None) -> dict[str, Any]:
    """`simple-user`; a deleted account shows as `ghost`."""
    name = login or GHOST
    return {
        "login": name,
        "id": stable_id("user", name.lower()),
        "url": f"{asked.url}/users/{name}",
        "type": "Bot" if name.endswith("[bot]") else "User",
        "site_admin": False,
    }


def repository_json(asked: RequestContext, served: ServedRepository) -> dict[str, Any]:
    """`minimal-repository`: what lists and search results hold."""
    return {
        "id": served.id,
        "node_id": served.node_id,
        "name": served.short_name,
        "full_name": served.name,
        "private": served.facts.is_private,
        "owner": user_json(asked, served.owner),
        "html_url": f"{WEB}/{served.name}",
        "description": served.facts.description or None,
        "fork": served.facts.is_fork,
        "url": f"{asked.url}/repos/{served.name}",
    }


def full_repository_json(asked: RequestContext, served: ServedRepository) -> dict[str, Any]:
    """`full-repository`."""
    tracker, facts = served.tracker(), served.facts
    opened = sum(thread.closed_at is None for thread in tracker.threads())
    return repository_json(asked, served) | {
        "pushed_at": stamp(tracker.last_commit) or "2008-01-01T00:00:00Z",
        "clone_url": f"{WEB}/{served.name}.git",
        "size": served.size_kb(),
        "stargazers_count": facts.stars,
        "language": facts.language or None,
        "archived": facts.is_archived,
        "visibility": "private" if facts.is_private else "public",
        "default_branch": tracker.default_branch,
        "open_issues_count": opened,
    }


def file_json(asked: RequestContext, served: ServedRepository, sha: str, change: FileChange) -> dict[str, Any]:
    """`diff-entry`, without its patch."""
    shown: dict[str, Any] = {
        "sha": change.blob,
        "filename": change.path,
        "status": change.status,
        "additions": change.additions,
        "deletions": change.deletions,
        "changes": change.additions + change.deletions,
        "contents_url": f"{asked.url}/repos/{served.name}/contents/{change.path}?ref={sha}",
    }
    return shown | ({"previous_filename": change.old_path} if change.old_path else {})
