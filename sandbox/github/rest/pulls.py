"""Pull requests: as JSON, as a diff; their files."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from sandbox.github import answers
from sandbox.github.answers import Answer
from sandbox.github.changes import FileChange, Span, diff_of, files_of, span_of
from sandbox.github.context import RequestContext
from sandbox.github.gateway import Incoming
from sandbox.github.served_folder import ServedRepository
from sandbox.github.threads import PullRequest, State, stamp

from .finding import find_pull, find_repository
from .paging import page_of
from .shapes import file_json

DIFF_FILES = 300
DIFF_LINES = 20_000
LISTED_FILES = 3_000
_HUNKS = re.compile(rb"^@@ ", re.MULTILINE)


def pull(asked: RequestContext, incoming: Incoming) -> Answer:
    """`GET /repos/{owner}/{repo}/pulls/{number}`. A diff of more than 300 files or 20,000 lines is refused with 406."""
    served, found = find_pull(asked, incoming)
    if ".diff" not in incoming.accept:
        return answers.ok(_full_json(served, found))
    size = served.size(found)
    if size.files > DIFF_FILES:
        return _too_large(f"the maximum number of files ({DIFF_FILES})")
    if size.additions + size.deletions > DIFF_LINES:
        return _too_large(f"the maximum number of lines ({DIFF_LINES})")
    return Answer(200, diff_of(served.path, span_of(served.path, found)), incoming.accept)


def pulls(asked: RequestContext, incoming: Incoming) -> Answer:
    """`GET /repos/{owner}/{repo}/pulls`: by creation, newest first; open ones unless asked otherwise."""
    served = find_repository(asked, incoming)
    state = incoming.query.get("state", "open")
    found = [
        pull_request
        for pull_request in served.tracker().newest_first
        if state in ("all", "open" if pull_request.state is State.OPEN else "closed")
    ]
    page = page_of(asked, incoming)
    shown = [_pull_json(served, pull_request) for pull_request in page.of(found)]
    return answers.ok(shown, page.links(incoming, len(found)))


def files(asked: RequestContext, incoming: Incoming) -> Answer:
    """`GET …/pulls/{number}/files`: never more than 3,000, and without a word about the rest."""
    served, found = find_pull(asked, incoming)
    span = span_of(served.path, found)
    changes = files_of(served.path, span)[:LISTED_FILES]
    page = page_of(asked, incoming)
    shown = page.of(changes)
    patches = _patches(served, span, shown)
    listed = [file_json(change) | patches.get(change.path, {}) for change in shown]
    return answers.ok(listed, page.links(incoming, len(changes)))


def _pull_json(served: ServedRepository, pull_request: PullRequest) -> dict[str, Any]:
    """`pull-request-simple`."""
    return {
        "number": pull_request.number,
        "state": "open" if pull_request.state is State.OPEN else "closed",
        "title": pull_request.title,
        "created_at": stamp(pull_request.created_at),
        "merged_at": stamp(pull_request.merged_at),
        "merge_commit_sha": pull_request.merge_sha,
        "head": {"sha": pull_request.head_sha},
        "base": {"sha": pull_request.fork_sha or span_of(served.path, pull_request).before},
    }


def _full_json(served: ServedRepository, pull_request: PullRequest) -> dict[str, Any]:
    size = served.size(pull_request)
    return _pull_json(served, pull_request) | {
        "merged": pull_request.merged_at is not None,
        "commits": pull_request.commit_count,
        "additions": size.additions,
        "deletions": size.deletions,
        "changed_files": size.files,
    }


def _patches(served: ServedRepository, span: Span, changes: Sequence[FileChange]) -> dict[str, dict[str, str]]:
    """Return the hunks of each text file, as in the field `patch`."""
    found = {}
    for change in changes:
        if change.additions + change.deletions == 0:
            continue
        diff = diff_of(served.path, span, *filter(None, (change.old_path, change.path)))
        start = _HUNKS.search(diff)
        if start is not None:
            found[change.path] = {"patch": diff[start.start() :].decode("utf-8", "replace").rstrip("\n")}
    return found


def _too_large(limit: str) -> Answer:
    message = f"Sorry, the diff exceeded {limit}. Consider using 'List pull requests files' API or locally cloning."
    return answers.refusal(406, message, errors=[{"resource": "PullRequest", "field": "diff", "code": "too_large"}])
