"""One repository's issues and pull requests: the history, completed by the side file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from formulacode_dagster.sources.git.log import Commit, Heads, from_epoch, login, login_of, read_commits, read_heads
from formulacode_dagster.sources.offline.derived import Landed, landed, missing_commit
from formulacode_dagster.sources.offline.side import (
    TextReference,
    closing_references,
    newest_body,
    newest_title,
    references_in,
    told_to_close,
)
from formulacode_dagster.sources.offline.side_file import PullRequestFacts, RepositoryFacts, versions_of

from .threads import (
    Issue,
    PullRequest,
    State,
    Thread,
    absent_sha,
    issue_of,
    mentions_of,
    merge_moment,
    titles_of,
)


@dataclass(frozen=True, slots=True)
class Mention:
    """A mention of a thread: by another one, *source*, or in the message of a commit."""

    moment: datetime
    source: Thread | None = None
    commit: Commit | None = None


@dataclass(frozen=True)
class Tracker:
    """Everything that was ever opened in a repository, by number. `commits` are those that mention something."""

    pull_requests: Mapping[int, PullRequest]
    issues: Mapping[int, Issue]
    default_branch: str
    tip: str
    last_commit: datetime | None
    commits: Sequence[Commit] = ()

    @cached_property
    def mentions(self) -> Mapping[TextReference, Sequence[Mention]]:
        """Mentions by their target."""
        found: dict[TextReference, list[Mention]] = {}
        for thread in self.threads():
            for reference, moment in mentions_of(thread).items():
                found.setdefault(reference, []).append(Mention(moment, thread))
        for commit in self.commits:
            for reference in references_in(commit.message):
                merged = self.pull_requests.get(reference.number) if not reference.repository else None
                if merged is None or merged.merge_sha != commit.sha:
                    found.setdefault(reference, []).append(Mention(from_epoch(commit.committed), commit=commit))
        return found

    @cached_property
    def closing(self) -> Sequence[PullRequest]:
        """Pull requests that close an issue."""
        return [pull_request for pull_request in self.pull_requests.values() if pull_request.closes]

    @cached_property
    def newest_first(self) -> Sequence[PullRequest]:
        """The pull requests by creation, newest first; by number if that is equal."""
        return sorted(self.pull_requests.values(), key=lambda thread: (thread.created_at, thread.number), reverse=True)

    @cached_property
    def by_merge(self) -> Sequence[PullRequest]:
        """The merged pull requests, by time of merge."""
        merged = [pull_request for pull_request in self.pull_requests.values() if pull_request.merged_at is not None]
        return sorted(merged, key=merge_moment)

    def threads(self) -> list[Thread]:
        """Pull requests, then issues."""
        return [*self.pull_requests.values(), *self.issues.values()]

    def thread(self, number: int) -> Thread | None:
        """The pull request or issue *number*."""
        return self.pull_requests.get(number) or self.issues.get(number)


def read_tracker(repository: Path, name: str, repository_id: int, facts: RepositoryFacts) -> Tracker:
    """Read the git directory *repository*, known as *name*.

    Raises ConfigurationError when the side file names a commit that is not there.
    """
    heads = read_heads(repository)
    line = read_commits(repository, "--first-parent", revisions=[heads.tip]) if heads.tip else []
    told = {pull_request.number: pull_request for pull_request in facts.pull_requests}
    issue_numbers = frozenset(issue.number for issue in facts.issues)
    reader = _Reader(repository, name, repository_id, heads, line, told, issue_numbers)
    pull_requests = reader.pull_requests() if line else {}
    closers = {
        number: pull_request
        for pull_request in sorted(pull_requests.values(), key=merge_moment, reverse=True)
        if pull_request.state is State.MERGED
        for number in (reference.number for reference in pull_request.closes if not reference.repository)
    }
    issues = {issue.number: issue_of(repository_id, issue, closers.get(issue.number)) for issue in facts.issues}
    return Tracker(
        pull_requests=pull_requests,
        issues=issues,
        default_branch=heads.default_branch,
        tip=heads.tip,
        last_commit=from_epoch(line[0].committed) if line else None,
        commits=[commit for commit in line if "#" in commit.message or "://" in commit.message],
    )


@dataclass(frozen=True)
class _Reader:
    repository: Path
    name: str
    id: int
    heads: Heads
    line: Sequence[Commit]
    facts: Mapping[int, PullRequestFacts]
    issues: frozenset[int]

    def pull_requests(self) -> dict[int, PullRequest]:
        found = landed(
            self.repository,
            self.name,
            self.heads,
            self.line,
            told=self.facts.values(),
            issues=self.issues,
        )
        merged = {number: self._merged(landed) for number, landed in found.items()}
        return dict(sorted((merged | self._unmerged(found)).items()))

    def _merged(self, landed: Landed) -> PullRequest:
        facts = landed.facts
        author = login(facts.author) if facts.author else landed.author
        committer = landed.commit.committer
        return self._pull_request(
            facts,
            title=landed.title,
            text=landed.body,
            author=author,
            created_at=landed.created_at,
            state=State.MERGED,
            merged_at=landed.merged_at,
            closed_at=landed.merged_at,
            base_sha=landed.base_sha,
            fork_sha=landed.fork_sha,
            head_sha=landed.head_sha or absent_sha(self.name, landed.number),
            merge_sha=landed.commit.sha,
            merged_by=login_of(committer, landed.commit.committer_email) if committer != "GitHub" else author,
            commit_count=landed.commit_count,
        )

    def _unmerged(self, merged: Mapping[int, Landed]) -> dict[int, PullRequest]:
        """Pull requests with a head and no merge: open if GitHub has a test merge for them, else closed."""
        tips = {number: sha for number, sha in self.heads.pulls.items() if number not in merged}
        tips |= {
            facts.number: facts.head_sha
            for facts in self.facts.values()
            if facts.head_sha and facts.number not in merged
        }
        shas = list(dict.fromkeys(tips.values()))
        commits = (
            {commit.sha: commit for commit in read_commits(self.repository, "--no-walk=unsorted", revisions=shas)}
            if shas
            else {}
        )
        for number, facts in self.facts.items():
            if number not in merged and tips.get(number) not in commits:
                raise missing_commit(self.repository, self.name, number, facts.head_sha or "a merge commit or a head")
        return {number: self._open(number, commits[sha]) for number, sha in tips.items() if sha in commits}

    def _open(self, number: int, head: Commit) -> PullRequest:
        facts = self.facts.get(number, PullRequestFacts(number=number))
        created_at = facts.created_at or from_epoch(head.committed)
        is_open = number in self.heads.mergeable or number not in self.heads.pulls
        return self._pull_request(
            facts,
            title=head.subject or f"Pull request {number}",
            text=head.body,
            author=login(facts.author) if facts.author else login_of(head.author, head.author_email),
            created_at=created_at,
            state=State.OPEN if is_open else State.CLOSED,
            merged_at=None,
            closed_at=None if is_open else max(created_at, from_epoch(head.committed)),
            base_sha="",
            fork_sha="",
            head_sha=head.sha,
            merge_sha=None,
            merged_by=None,
            commit_count=facts.commit_count or 1,
        )

    def _pull_request(
        self,
        facts: PullRequestFacts,
        *,
        title: str,
        text: str,
        author: str | None,
        created_at: datetime,
        **landing: Any,
    ) -> PullRequest:
        """Return the history's facts, with its *title* and *text* as defaults for *facts*."""
        body = newest_body(facts, text)
        closes = self._closes(facts, body)
        return PullRequest(
            repository_id=self.id,
            number=facts.number,
            title=newest_title(facts, title),
            body=body,
            author=author,
            labels=facts.labels,
            created_at=created_at,
            base_ref=facts.base_ref or self.heads.default_branch,
            closes=closes,
            linked=tuple(issue for issue in closes if issue not in closing_references(body)),
            versions=versions_of(author, created_at, text if facts.body is None else facts.body, facts.edits),
            comments=facts.comments,
            titles=titles_of(facts.title or title, author, facts.titles),
            **landing,
        )

    def _closes(self, facts: PullRequestFacts, body: str) -> tuple[TextReference, ...]:
        """Return the side file's links, else the body's, as far as this repository has such issues."""
        return told_to_close(facts) or tuple(
            reference
            for reference in closing_references(body)
            if reference.repository or reference.number in self.issues
        )
