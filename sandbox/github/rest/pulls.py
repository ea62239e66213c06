"""Pull requests: as JSON, as a diff, as patches; their files and commits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sandbox.github import answers
from sandbox.github.answers import Answer
from sandbox.github.changes import FileChange, Span, diff_of, files_of, mail_of, span_of
from sandbox.github.commits import commits_of
from sandbox.github.context import WEB, Asked
from sandbox.github.gateway import Incoming
from sandbox.github.library import Shelf
from sandbox.github.node_ids import Kind, node_id, thread_id
from sandbox.github.threads import PullRequest, State
from sandbox.github.tracker import newest_first

from .finding import find_pull, find_shelf
from .paging import page_of
from .shapes import commit_json, file_json, label_json, repository_json, stamp, user_json

DIFF_FILES = 300
DIFF_LINES = 20_000
LISTED_FILES = 3_000
LISTED_COMMITS = 250
_HUNKS = re.compile(rb"^@@ ", re.MULTILINE)


def pull(asked: Asked, incoming: Incoming) -> Answer:
    """`GET /repos/{owner}/{repo}/pulls/{number}`. A diff of more than 300 files or 20,000 lines is refused with 406."""
    shelf, found = find_pull(asked, incoming)
    as_diff, as_mail = ".diff" in incoming.accept, ".patch" in incoming.accept
    if not as_diff and not as_mail:
        return answers.ok(_full_json(asked, shelf, found))
    span = span_of(shelf.path, found)
    size = shelf.size(found)
    if size.files > DIFF_FILES:
        return _too_large(f"the maximum number of files ({DIFF_FILES})")
    if size.additions + size.deletions > DIFF_LINES:
        return _too_large(f"the maximum number of lines ({DIFF_LINES})")
    if as_diff:
        return answers.text(diff_of(shelf.path, span), incoming.accept)
    branch = Span(found.fork_sha, found.head_sha) if found.head_known and found.fork_sha else span
    return answers.text(mail_of(shelf.path, branch), incoming.accept)


def pulls(asked: Asked, incoming: Incoming) -> Answer:
    """`GET /repos/{owner}/{repo}/pulls`: open ones, newest first, unless asked otherwise."""
    shelf = find_shelf(asked, incoming)
    state = incoming.query.get("state", "open")
    base = incoming.query.get("base")
    found = [
        one
        for one in newest_first(shelf.tracker().pull_requests.values())
        if isinstance(one, PullRequest)
        and state in ("all", "open" if one.state is State.OPEN else "closed")
        and base in (None, one.base_ref)
    ]
    if incoming.query.get("sort") == "updated":
        found.sort(key=lambda one: one.updated_at, reverse=True)
    if (
        incoming.query.get("direction", "desc" if incoming.query.get("sort", "created") == "created" else "asc")
        == "asc"
    ):
        found.reverse()
    page = page_of(asked, incoming)
    return answers.ok([pull_json(asked, shelf, one) for one in page.of(found)], page.links(incoming, len(found)))


def files(asked: Asked, incoming: Incoming) -> Answer:
    """`GET …/pulls/{number}/files`: never more than 3,000, and without a word about the rest."""
    shelf, found = find_pull(asked, incoming)
    span = span_of(shelf.path, found)
    changes = files_of(shelf.path, span)[:LISTED_FILES]
    page = page_of(asked, incoming)
    shown = page.of(changes)
    patches = _patches(shelf, span, shown)
    listed = [file_json(asked, shelf, span.after, one) | patches.get(one.path, {}) for one in shown]
    return answers.ok(listed, page.links(incoming, len(changes)))


def commits(asked: Asked, incoming: Incoming) -> Answer:
    """`GET …/pulls/{number}/commits`: oldest first, never more than 250."""
    shelf, found = find_pull(asked, incoming)
    listed = commits_of(shelf.path, found)[:LISTED_COMMITS]
    page = page_of(asked, incoming)
    return answers.ok([commit_json(asked, shelf, one) for one in page.of(listed)], page.links(incoming, len(listed)))


def pull_json(asked: Asked, shelf: Shelf, one: PullRequest) -> dict[str, Any]:
    """`pull-request-simple`."""
    url = f"{asked.url}/repos/{shelf.name}"
    page = f"{WEB}/{shelf.name}/pull/{one.number}"
    number = thread_id(shelf.id, one.number)
    fork_owner = one.author or shelf.owner
    return {
        "url": f"{url}/pulls/{one.number}",
        "id": number,
        "node_id": node_id(Kind.PULL_REQUEST, shelf.id, number),
        "html_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "issue_url": f"{url}/issues/{one.number}",
        "commits_url": f"{url}/pulls/{one.number}/commits",
        "comments_url": f"{url}/issues/{one.number}/comments",
        "number": one.number,
        "state": "open" if one.state is State.OPEN else "closed",
        "locked": False,
        "title": one.title,
        "user": user_json(asked, one.author),
        "body": one.body or None,
        "labels": [label_json(shelf, name) for name in one.labels],
        "created_at": stamp(one.created_at),
        "updated_at": stamp(one.updated_at),
        "closed_at": stamp(one.closed_at),
        "merged_at": stamp(one.merged_at),
        "merge_commit_sha": one.merge_sha,
        "draft": False,
        "head": {
            "label": f"{fork_owner}:{one.head_ref}",
            "ref": one.head_ref,
            "sha": one.head_sha,
            "user": user_json(asked, one.author),
            "repo": None,
        },
        "base": {
            "label": f"{shelf.owner}:{one.base_ref}",
            "ref": one.base_ref,
            "sha": one.fork_sha or span_of(shelf.path, one).before,
            "user": user_json(asked, shelf.owner),
            "repo": repository_json(asked, shelf),
        },
    }


def _full_json(asked: Asked, shelf: Shelf, one: PullRequest) -> dict[str, Any]:
    size = shelf.size(one)
    return pull_json(asked, shelf, one) | {
        "merged": one.merged_at is not None,
        "mergeable": None,
        "mergeable_state": "unknown",
        "merged_by": user_json(asked, one.merged_by) if one.merged_by else None,
        "comments": len(one.comments),
        "review_comments": 0,
        "maintainer_can_modify": False,
        "commits": one.commit_count,
        "additions": size.additions,
        "deletions": size.deletions,
        "changed_files": size.files,
    }


def _patches(shelf: Shelf, span: Span, changes: Sequence[FileChange]) -> dict[str, dict[str, str]]:
    """The hunks of each text file, as the field `patch` holds them."""
    found = {}
    for one in changes:
        if one.additions + one.deletions == 0:
            continue
        diff = diff_of(shelf.path, span, *filter(None, (one.old_path, one.path)))
        start = _HUNKS.search(diff)
        if start is not None:
            found[one.path] = {"patch": diff[start.start() :].decode("utf-8", "replace").rstrip("\n")}
    return found


def _too_large(limit: str) -> Answer:
    message = f"Sorry, the diff exceeded {limit}. Consider using 'List pull requests files' API or locally cloning."
    return answers.refusal(406, message, errors=[{"resource": "PullRequest", "field": "diff", "code": "too_large"}])
