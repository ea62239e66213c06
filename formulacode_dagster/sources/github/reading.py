"""One pull request or issue, whole and typed: facts, diff, files, comments, timeline."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Any

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.identity import item_key
from formulacode_dagster.models.links import Link, UnreadableLink
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import ChangedFile, MergedPullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.github.transport.client import GitHubTransport

from .linked import whole_pull_request
from .nodes import GitHubRecord, PullRequestNode, read
from .queries import PULL_REQUEST_BY_NAME, PULL_REQUEST_FILES_PATH, PULL_REQUEST_PATH, TIMELINE_PATH
from .references import ThreadReference
from .threads import as_it_stood, read_threads
from .timeline import TimelineEvent

DIFF = "application/vnd.github.diff"
PAGE = 100
EMPTY_BLOB = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
LISTED_FILES = 3_000
"""REST lists no more, and does not say so: https://docs.github.com/en/rest/pulls/pulls#list-pull-requests-files."""
STATUS_LETTERS = {
    "added": "A",
    "removed": "D",
    "modified": "M",
    "renamed": "R",
    "copied": "C",
    "changed": "T",
    "unchanged": "M",
}


class _Unmerged(GitHubRecord):
    merged_at: datetime | None = None


async def read_pull_request(client: GitHubTransport, repository: str, number: int) -> MergedPullRequest:
    """The facts of one merged pull request, 1 point, as intake stores them.

    Raises ItemFailure: `vanished` when GitHub does not show it, `not_merged` when it has no merge to speak of.
    """
    name = item_key(repository, number)
    owner, _, short = repository.partition("/")
    answer = await client.graphql(PULL_REQUEST_BY_NAME, {"owner": owner, "name": short, "number": number})
    raw = (answer.data.get("repository") or {}).get("pullRequest")
    if raw is None:
        missing = answer.missing("repository") or answer.missing("repository", "pullRequest")
        raise ItemFailure(
            FailureKind.VANISHED if missing else FailureKind.INCOMPLETE,
            f"GitHub does not show {name}",
            why=answer.words(),
        )
    if read(_Unmerged, raw, name).merged_at is None:
        raise ItemFailure(
            FailureKind.NOT_MERGED, f"{name} is not merged", remedy="Only merged pull requests are read whole"
        )
    node = read(PullRequestNode, raw, name)
    return await whole_pull_request(
        client,
        node,
        month=Month.of(node.merged_at),
        repository_id=node.repository.database_id or 0,
        repository=node.repository.name_with_owner,
    )


async def read_diff(client: GitHubTransport, repository: str, number: int) -> bytes:
    """Return the pull request's diff, 1 REST call; bytes that are not UTF-8 become replacement characters.

    Raises ItemFailure `too_large` beyond 300 files or 20,000 lines: GitHub has no such diff, a mirror has.
    """
    try:
        answer = await client.rest(PULL_REQUEST_PATH.format(repository=repository, number=number), accept=DIFF)
    except ItemFailure as failure:
        if not failure.why.startswith("406"):
            raise
        raise ItemFailure(
            FailureKind.TOO_LARGE,
            f"GitHub gives no diff of {item_key(repository, number)}",
            why=failure.why,
            remedy="Read it from a mirror",
        ) from failure
    return str(answer.data).encode()


async def read_files(client: GitHubTransport, repository: str, number: int) -> tuple[ChangedFile, ...]:
    """Every file of the pull request, 1 REST call for 100 of them.

    Raises ItemFailure `too_large` when they are more than REST lists (3,000).
    """
    files: list[ChangedFile] = []
    async for raw in _pages(client, PULL_REQUEST_FILES_PATH.format(repository=repository, number=number)):
        files.append(_file(raw))
    if len(files) >= LISTED_FILES:
        pull = (await client.rest(PULL_REQUEST_PATH.format(repository=repository, number=number))).data
        if pull["changed_files"] != len(files):
            raise ItemFailure(
                FailureKind.TOO_LARGE,
                f"GitHub lists {len(files)} of the {pull['changed_files']} files of {item_key(repository, number)}",
                remedy="Read them from a mirror",
            )
    return tuple(files)


async def read_thread(client: GitHubTransport, repository: str, number: int, before: datetime | None = None) -> Link:
    """An issue or pull request with its comments, 1 point; with *before*, as it stood at that moment.

    Raises ItemFailure `vanished` when GitHub does not show it, or it was not there *before*.
    """
    name = ThreadReference(repository, number)
    node = (await read_threads(client, [name]))[name]
    if isinstance(node, UnreadableLink):
        kind = FailureKind.VANISHED if node.reason == "not_found" else FailureKind.INCOMPLETE
        raise ItemFailure(kind, f"GitHub does not show {name}", why=node.reason)
    if before is not None and node.created_at >= before:
        raise ItemFailure(FailureKind.VANISHED, f"{name} was opened only at {node.created_at.isoformat()}")
    (thread,) = await as_it_stood(client, [node], before)
    return thread.link


async def read_timeline(client: GitHubTransport, repository: str, number: int) -> tuple[TimelineEvent, ...]:
    """Everything that happened to an issue or pull request, oldest first, 1 REST call for 100 entries."""
    path = TIMELINE_PATH.format(repository=repository, number=number)
    return tuple([_event(raw) async for raw in _pages(client, path)])


async def _pages(client: GitHubTransport, path: str) -> AsyncIterator[Mapping[str, Any]]:
    page = 1
    while True:
        answer = await client.rest(path, {"per_page": PAGE, "page": page})
        for raw in answer.data:
            yield raw
        if not answer.next_page:
            return
        page += 1


def _file(raw: Mapping[str, Any]) -> ChangedFile:
    counted = raw["additions"] + raw["deletions"]
    # an entry without lines and patch is binary, or a rename or mode change
    shown = counted or "patch" in raw or raw["sha"] == EMPTY_BLOB
    binary = not shown and raw["status"] in ("added", "removed", "modified")
    return ChangedFile(
        path=raw["filename"],
        status=STATUS_LETTERS[raw["status"]],
        additions=raw["additions"],
        deletions=raw["deletions"],
        binary=binary,
        old_path=raw.get("previous_filename"),
    )


def _event(raw: Mapping[str, Any]) -> TimelineEvent:
    who = raw.get("actor") or raw.get("user") or {}
    # a commit's own entry is signed and dated by its author
    author = raw.get("author") or {}
    issue = (raw.get("source") or {}).get("issue") or {}
    home = (issue.get("repository") or {}).get("full_name", "")
    renamed = raw.get("rename") or {}
    return TimelineEvent(
        kind=raw.get("event", ""),
        created_at=raw.get("created_at") or raw.get("submitted_at") or author.get("date"),
        actor=who.get("login") or author.get("name") or "",
        body=raw.get("body") or raw.get("message") or "",
        source=item_key(home, issue["number"]) if home and "number" in issue else "",
        commit_sha=raw.get("commit_id") or raw.get("sha") or "",
        label=(raw.get("label") or {}).get("name", ""),
        previous_title=renamed.get("from", ""),
        title=renamed.get("to", ""),
    )
