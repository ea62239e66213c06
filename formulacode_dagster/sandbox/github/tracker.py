"""One repository's issues and pull requests: the history read, the side file laid over it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from pathlib import Path

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.pull_request import MergeKind
from formulacode_dagster.sandbox.side_file import PullRequestFacts, RepositoryFacts, versions_of

from .history import Commit, Heads, Mark, Own, Topology, find_commit, marks, read_commits, read_heads
from .threads import (
    Issue,
    PullRequest,
    Reference,
    State,
    Thread,
    absent_sha,
    closing_references,
    from_epoch,
    issue_of,
    login,
    login_of,
    mentions_of,
    references_in,
    titles_of,
    utc,
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
    first_commit: datetime | None
    last_commit: datetime | None
    commits: Sequence[Commit] = ()

    @cached_property
    def mentions(self) -> Mapping[Reference, Sequence[Mention]]:
        """Who mentions whom: by what is mentioned."""
        found: dict[Reference, list[Mention]] = {}
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
        """Those that close an issue."""
        return [one for one in self.pull_requests.values() if one.closes]

    @cached_property
    def by_merge(self) -> Sequence[PullRequest]:
        """The merged pull requests, by time of merge."""
        merged = [one for one in self.pull_requests.values() if one.merged_at is not None]
        return sorted(merged, key=lambda one: one.merged_at or one.created_at)

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
    pull_requests = _Reader(repository, name, repository_id, heads, line, facts).pull_requests() if line else {}
    closers = {
        number: pull_request
        for pull_request in sorted(pull_requests.values(), key=lambda pr: pr.merged_at or pr.created_at, reverse=True)
        if pull_request.state is State.MERGED
        for number in (reference.number for reference in pull_request.closes if not reference.repository)
    }
    issues = {one.number: issue_of(repository_id, one, closers.get(one.number)) for one in facts.issues}
    return Tracker(
        pull_requests=pull_requests,
        issues=issues,
        default_branch=heads.default_branch,
        tip=heads.tip,
        first_commit=from_epoch(line[-1].committed) if line else None,
        last_commit=from_epoch(line[0].committed) if line else None,
        commits=[commit for commit in line if "#" in commit.message or "://" in commit.message],
    )


class _Reader:
    def __init__(
        self,
        repository: Path,
        name: str,
        repository_id: int,
        heads: Heads,
        line: Sequence[Commit],
        facts: RepositoryFacts,
    ) -> None:
        self._repository = repository
        self._name = name
        self._id = repository_id
        self._heads = heads
        self._line = line
        self._on_line = {commit.sha: index for index, commit in enumerate(line)}
        self._facts = {one.number: one for one in facts.pull_requests}
        self._issues = frozenset(issue.number for issue in facts.issues)

    def pull_requests(self) -> dict[int, PullRequest]:
        found = {number: mark for number, mark in marks(self._line, self._heads).items() if number not in self._issues}
        for facts in self._facts.values():
            if facts.merge_commit_sha:
                found[facts.number] = self._named(facts, found.get(facts.number))
            if facts.head_sha and facts.number in found:
                found[facts.number] = replace(found[facts.number], head_sha=facts.head_sha)
        found = self._titled(found)
        topology = Topology(self._repository, self._line, [mark.head_sha for mark in found.values() if mark.head_sha])
        merged = {number: self._merged(mark, topology) for number, mark in found.items()}
        return dict(sorted((merged | self._unmerged(found)).items()))

    def _named(self, facts: PullRequestFacts, derived: Mark | None) -> Mark:
        """The mark that the side file sets."""
        sha = facts.merge_commit_sha or ""
        index = self._on_line.get(sha)
        commit = self._line[index] if index is not None else find_commit(self._repository, sha)
        if commit is None:
            raise self._missing(facts.number, sha)
        if derived is not None and derived.commit.sha == commit.sha:
            return derived
        head = commit.parents[1] if len(commit.parents) > 1 else self._heads.pulls.get(facts.number)
        return Mark(facts.number, commit, head, commit.subject, commit.body)

    def _titled(self, found: Mapping[int, Mark]) -> dict[int, Mark]:
        """*found*, with the titles that merge messages do not tell taken from the branches' last commits."""
        heads = [mark.head_sha for mark in found.values() if not mark.title and mark.head_sha]
        commits = read_commits(self._repository, "--no-walk=unsorted", revisions=heads) if heads else []
        titles = {commit.sha: commit.subject for commit in commits}
        return {
            number: mark if mark.title else replace(mark, title=titles.get(mark.head_sha or "") or mark.commit.subject)
            for number, mark in found.items()
        }

    def _merged(self, mark: Mark, topology: Topology) -> PullRequest:
        commit, facts = mark.commit, self._facts.get(mark.number, PullRequestFacts(number=mark.number))
        known = mark.head_sha is not None and topology.knows(mark.head_sha)
        kind = facts.merge_kind or (MergeKind.MERGE if len(commit.parents) > 1 else MergeKind.SQUASH)
        base = commit.parents[0] if commit.parents else ""
        own = Own(1, commit.authored, base)
        if kind is MergeKind.REBASE:
            head = mark.head_sha if known else None
            count = facts.commit_count or (topology.own(head, base).count if head else 1)
            base = self._ancestor(commit, count)
            own = topology.own(head, base) if head else Own(count, commit.authored, base)
        elif known and mark.head_sha:
            own = topology.own(mark.head_sha, base)
        merged_at = utc(facts.merged_at) if facts.merged_at else from_epoch(commit.committed)
        created_at = (
            utc(facts.created_at) if facts.created_at else min(from_epoch(own.first or commit.committed), merged_at)
        )
        owner, _, branch = mark.branch.partition("/")
        author = login(facts.author) if facts.author else self._author(owner, mark)
        text = mark.body if facts.body is None else facts.body
        versions = versions_of(author, created_at, text, facts.edits)
        body = versions[-1].body if versions else text
        closes = self._closes(facts, body)
        title = facts.title or mark.title
        titles = titles_of(title, author, facts.titles)
        return PullRequest(
            repository_id=self._id,
            number=mark.number,
            title=titles[-1].current if titles else title,
            body=body,
            author=author,
            labels=facts.labels,
            state=State.MERGED,
            created_at=created_at,
            merged_at=merged_at,
            closed_at=merged_at,
            base_ref=facts.base_ref or self._heads.default_branch,
            base_sha=base,
            fork_sha=own.fork or base,
            head_ref=branch or f"pull-{mark.number}",
            head_sha=mark.head_sha or absent_sha(self._name, mark.number),
            head_known=known,
            merge_sha=commit.sha,
            merge_kind=kind,
            merged_by=login_of(commit.committer, commit.committer_email) if commit.committer != "GitHub" else author,
            commit_count=facts.commit_count or max(1, own.count),
            closes=closes,
            linked=tuple(one for one in closes if one not in closing_references(body)),
            versions=versions,
            comments=facts.comments,
            titles=titles,
        )

    def _unmerged(self, merged: Mapping[int, Mark]) -> dict[int, PullRequest]:
        """Pull requests with a head and no merge: open where GitHub tries out their merge, else closed."""
        tips = {number: sha for number, sha in self._heads.pulls.items() if number not in merged}
        tips |= {one.number: one.head_sha for one in self._facts.values() if one.head_sha and one.number not in merged}
        shas = list(dict.fromkeys(tips.values()))
        commits = (
            {one.sha: one for one in read_commits(self._repository, "--no-walk=unsorted", revisions=shas)}
            if shas
            else {}
        )
        for number, facts in self._facts.items():
            if number not in merged and tips.get(number) not in commits:
                raise self._missing(number, facts.head_sha or "a merge commit or a head")
        return {number: self._open(number, commits[sha]) for number, sha in tips.items() if sha in commits}

    def _open(self, number: int, head: Commit) -> PullRequest:
        facts = self._facts.get(number, PullRequestFacts(number=number))
        created_at = utc(facts.created_at) if facts.created_at else from_epoch(head.committed)
        is_open = number in self._heads.mergeable or number not in self._heads.pulls
        text = head.body if facts.body is None else facts.body
        author = login(facts.author) if facts.author else login_of(head.author, head.author_email)
        versions = versions_of(author, created_at, text, facts.edits)
        body = versions[-1].body if versions else text
        closes = self._closes(facts, body)
        title = facts.title or head.subject or f"Pull request {number}"
        titles = titles_of(title, author, facts.titles)
        return PullRequest(
            repository_id=self._id,
            number=number,
            title=titles[-1].current if titles else title,
            body=body,
            author=author,
            labels=facts.labels,
            state=State.OPEN if is_open else State.CLOSED,
            created_at=created_at,
            merged_at=None,
            closed_at=None if is_open else max(created_at, from_epoch(head.committed)),
            base_ref=facts.base_ref or self._heads.default_branch,
            base_sha="",
            fork_sha="",
            head_ref=f"pull-{number}",
            head_sha=head.sha,
            head_known=True,
            merge_sha=None,
            merge_kind=None,
            merged_by=None,
            commit_count=facts.commit_count or 1,
            closes=closes,
            linked=tuple(one for one in closes if one not in closing_references(body)),
            versions=versions,
            comments=facts.comments,
            titles=titles,
        )

    def _ancestor(self, commit: Commit, count: int) -> str:
        """The first-parent ancestor *count* steps below *commit*."""
        index = self._on_line.get(commit.sha)
        if index is not None and index + count < len(self._line):
            return self._line[index + count].sha
        below = find_commit(self._repository, f"{commit.sha}~{count}")
        return below.sha if below else ""

    def _author(self, owner: str, mark: Mark) -> str | None:
        # A branch of the repository itself names its owner, who need not be the author.
        if owner and owner.lower() != self._name.partition("/")[0].lower():
            return owner
        return login_of(mark.commit.author, mark.commit.author_email)

    def _closes(self, facts: PullRequestFacts, body: str) -> tuple[Reference, ...]:
        """What the side file says, else what the body's keywords say, as far as this repository has such issues."""
        told = (
            Reference("", one) if isinstance(one, int) else references_in(one)[0]
            for one in facts.closes
            if isinstance(one, int) or references_in(one)
        )
        return tuple(told) or tuple(
            one for one in closing_references(body) if one.repository or one.number in self._issues
        )

    def _missing(self, number: int, what: str) -> ConfigurationError:
        return ConfigurationError(
            f"the side file's pull request {self._name}#{number} has no commit in {self._repository}",
            why=f"{what} is not there",
            remedy="Set merge_commit_sha or head_sha to a commit of the repository",
        )


def newest_first(threads: Iterable[Thread]) -> list[Thread]:
    """By creation, newest first; by number where that is equal."""
    return sorted(threads, key=lambda thread: (thread.created_at, thread.number), reverse=True)
