"""The statement of one pull request: its variants are written, and judged before anybody is given them.

The writer sees a `WriterView` and no more. Only the judge knows the patch; it leaves out, and never rewrites.
"""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.links import LinkWalk
from formulacode_dagster.models.problem import Leak, LeakKind, ProblemStatement
from formulacode_dagster.models.pull_request import LinkedIssue, MergedPullRequest
from formulacode_dagster.models.reasons import FailureKind

from .anonymize import People
from .solution import leaks
from .view import WriterView, view_of
from .writing import TEMPLATE_VERSION, write_issue, write_minimal


def state_problem(
    facts: MergedPullRequest, *, patch: bytes, repository_description: str = "", walk: LinkWalk | None = None
) -> ProblemStatement:
    """The statement of a pull request in its variants.

    The issues are those of *walk*; without it, those that *facts* says it closes. One that tells something of *patch*
    is left out whole: what surrounds a withheld line tells the rest. Raises ItemFailure (`leak`) when even the minimal
    statement tells something.
    """
    view = task_view(facts, repository_description=repository_description, walk=walk)
    left_out = [leak for issue in view.issues for leak in _leaks(issue.name, f"{issue.title}\n\n{issue.body}", patch)]
    shown = view.only({issue.name for issue in view.issues} - {leak.where for leak in left_out})
    minimal, with_issues = write_minimal(shown), write_issue(shown)
    if telling := _leaks("statement_minimal", minimal, patch):
        raise ItemFailure(
            FailureKind.LEAK,
            f"the minimal statement of {facts.item} tells its solution",
            why=f"it holds {telling[0].span[:80]!r}",
            remedy="Look at the repository's description: nothing else of it is not ours",
        )
    if with_issues is not None and (telling := _leaks("statement_issue", with_issues, patch)):
        # what no issue tells by itself, two of them may tell together
        left_out, shown, with_issues = [*left_out, *telling], view.only(()), None
    return ProblemStatement(
        month=facts.month,
        repository_id=facts.repository_id,
        number=facts.number,
        statement_minimal=minimal,
        statement_issue=with_issues,
        final_md=with_issues or minimal,
        issues=tuple(issue.name for issue in shown.issues),
        left_out=tuple(left_out),
        walk=walk,
        template_version=TEMPLATE_VERSION,
    )


def task_view(facts: MergedPullRequest, *, repository_description: str, walk: LinkWalk | None) -> WriterView:
    """What the writer of *facts*'s statement is shown: neither its title nor its body, nor those of *walk*."""
    issues: Sequence[LinkedIssue] = facts.linked_issues if walk is None else walk.links
    return view_of(
        repository=facts.repository,
        number=facts.number,
        opened_at=facts.created_at,
        description=repository_description,
        issues=issues,
        people=People([facts.author, *(issue.author for issue in issues)]),
    )


def _leaks(where: str, text: str, patch: bytes) -> list[Leak]:
    return [Leak(kind=LeakKind.LINE, where=where, span=line) for line in leaks(text, patch, new_only=True)]
