"""A problem summary for a person with a pull request in hand."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.pull_request import LinkedIssue
from formulacode_dagster.selection.statements.pull_request_text import render_pull_request_text

from .client import PR
from .links import Links


def render_problem_statement(
    pr: PR,
    *,
    anonymize: bool = True,
    issues: Sequence[LinkedIssue] | None = None,
    repo_description: str = "",
    patch: bytes | None = None,
) -> str:
    """Return the problem according to *pr* and its issues, in markdown. **No task text**: it quotes the pull request.

    Lines of the patch are withheld, a mechanism described in prose is not. Solvers get `final_md` of the dataset, which
    is written without the pull request.

    *issues* are those of `scrape_links`, which also gives the pull request's own text as it stood at the merge, or any
    others; without them, the closing issues of *pr*. Lines of the patch, *patch* or that of *pr*, are withheld, so
    there has to be one. Raises ConfigurationError if *pr* was not fetched or has no patch, ItemFailure (`leak`) if the
    solution cannot be withheld.
    """
    if pr.facts is None:
        raise ConfigurationError(f"no data on {pr.item} except its name", remedy="Use `await PR.fetch(...)`")
    patch = pr.patch if patch is None else patch
    if patch is None:
        raise ConfigurationError(
            f"the patch of {pr.item} is not at hand, so its lines cannot be kept out of the statement",
            remedy="Use `await PR.fetch(...)`, or pass patch=await client.get_diff(...)",
        )
    return render_pull_request_text(
        pr.facts,
        patch=patch,
        repository_description=repo_description,
        walk=issues.walk if isinstance(issues, Links) else None,
        issues=issues,
        anonymize=anonymize,
    )
