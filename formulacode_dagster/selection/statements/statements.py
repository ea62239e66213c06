"""The statement of one pull request: its variants are written, and judged before anybody is given them.

The writer sees a `WriterView` and no more. Only the judge knows the patch; it leaves out, and never rewrites.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.links import LinkWalk
from formulacode_dagster.models.problem import BranchCommit, Leak, ProblemStatement
from formulacode_dagster.models.pull_request import LinkedIssue, MergedPullRequest
from formulacode_dagster.models.reasons import FailureKind

from .anonymize import People, signed_names
from .gates import Gates, WithheldText
from .second_look import look_at
from .view import EarlierIssue, WriterView, view_of
from .writing import TEMPLATE_VERSION, write_issue, write_minimal

NamesAtBase = Callable[[Collection[str]], frozenset[str]]
"""Returns which of some names occur in the files of the base commit."""


@dataclass(frozen=True)
class Stated:
    """A statement, its writer's view, and what judges texts about it."""

    statement: ProblemStatement
    view: WriterView
    judge: Callable[[str, str], list[Leak]]
    """Return the leaks of a text, found at a place: by the gates, and by the check of the month where they find none,
    since that blocks the whole month."""


def state_problem(
    facts: MergedPullRequest,
    *,
    patch: bytes,
    repository_description: str = "",
    walk: LinkWalk | None = None,
    commits: Sequence[BranchCommit] = (),
    names_at_base: NamesAtBase | None = None,
) -> Stated:
    """The statement of a pull request in its variants.

    The issues are those of *walk*; without it, those that *facts* says it closes. *commits* are the branch's. An issue
    that reveals something of the solution, to the gates or to the check of the month, is left out as a whole, since the
    text around a withheld line reveals the rest. Raises ItemFailure (`leak`) if even the minimal statement reveals
    something.
    """
    issues: Sequence[LinkedIssue] = facts.linked_issues if walk is None else walk.links
    view = task_view(facts, repository_description=repository_description, issues=issues, commits=commits)
    texts = [_text(issue) for issue in view.issues]
    secrets = secrets_of(facts, patch=patch, walk=walk, commits=commits)
    minimal = write_minimal(view)
    # the repository's own name may be among them: a patch may be the first to write it in a file
    every = [*texts, "\n\n".join([*texts, minimal])] if names_at_base else []
    suspects = frozenset[str]().union(*map(Gates(secrets).suspects_in, every))
    known = names_at_base(suspects) if names_at_base and suspects else frozenset()
    gates = Gates(replace(secrets, names_at_base=known), earlier=[*texts, minimal])
    statement = ProblemStatement(
        month=facts.month,
        repository_id=facts.repository_id,
        number=facts.number,
        statement_minimal=minimal,
        final_md=minimal,
        names_at_base=tuple(sorted(known)),
        commits=tuple(commits),
        walk=walk,
        template_version=TEMPLATE_VERSION,
    )

    def judge(text: str, where: str) -> list[Leak]:
        return gates.judge(text, where) or list(look_at({where: text}, statement, facts, patch))

    if telling := judge(minimal, "statement_minimal"):
        raise ItemFailure(
            FailureKind.LEAK,
            f"the minimal statement of {facts.item} reveals its solution",
            why=f"{telling[0].kind}: {telling[0].span[:80]!r}",
            remedy="Check the repository's description: it is the only foreign text",
        )
    left_out = [leak for issue in view.issues for leak in judge(_text(issue), issue.name)]
    shown = view.only({issue.name for issue in view.issues} - {leak.where for leak in left_out})
    with_issues = write_issue(shown)
    if with_issues is not None and (telling := judge(with_issues, "statement_issue")):
        # two issues may reveal together what neither does by itself
        left_out, shown, with_issues = [*left_out, *telling], view.only(()), None
    changes = {
        "statement_issue": with_issues,
        "final_md": with_issues or minimal,
        "issues": tuple(issue.name for issue in shown.issues),
        "left_out": tuple(left_out),
    }
    return Stated(statement.model_copy(update=changes), view, judge)


def task_view(
    facts: MergedPullRequest,
    *,
    repository_description: str,
    issues: Sequence[LinkedIssue],
    commits: Sequence[BranchCommit] = (),
) -> WriterView:
    """Return the view of the writer of *facts*'s statement, including *issues* but neither title nor body.

    *commits* provide people to anonymize.
    """
    return view_of(
        repository=facts.repository,
        number=facts.number,
        opened_at=facts.created_at,
        description=repository_description,
        issues=issues,
        people=People(people_of(facts, issues, commits)),
    )


def secrets_of(
    facts: MergedPullRequest,
    *,
    patch: bytes,
    walk: LinkWalk | None,
    commits: Sequence[BranchCommit] = (),
    names_at_base: frozenset[str] = frozenset(),
) -> WithheldText:
    """Return everything that no text about the pull request may reveal; *commits* are those of its branch."""
    issues: Sequence[LinkedIssue] = facts.linked_issues if walk is None else walk.links
    shas = (facts.merge_commit_sha, facts.head_sha, *(commit.sha for commit in commits))
    return WithheldText(
        repository=facts.repository,
        number=facts.number,
        patch=patch,
        title=facts.title,
        texts=(facts.body, *((walk.title, walk.body) if walk else ()), *(commit.message for commit in commits)),
        later_comments=tuple(comment.body for comment in walk.later) if walk else (),
        shas=tuple(dict.fromkeys(sha for sha in shas if sha)),
        people=tuple(people_of(facts, issues, commits)),
        names_at_base=names_at_base,
    )


def people_of(
    facts: MergedPullRequest, issues: Sequence[LinkedIssue], commits: Sequence[BranchCommit] = ()
) -> list[str]:
    """Everybody known to have a part in it, by login, and by the names and addresses by which they sign."""
    signed = [name for text in (facts.body, *(commit.message for commit in commits)) for name in signed_names(text)]
    committed = [name for commit in commits for name in commit.people]
    return list(dict.fromkeys([facts.author, *(issue.author for issue in issues), *signed, *committed]))


def _text(issue: EarlierIssue) -> str:
    return f"{issue.title}\n\n{issue.body}"
