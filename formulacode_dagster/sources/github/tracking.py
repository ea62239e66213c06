"""Tracking rules: which repositories are tracked, and why others are not. Pure.

In this order: denied, allowed, fork, private, archived before the month, empty, few stars, language.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import Rejection
from formulacode_dagster.models.intake import ListedRepository, ListVerdict
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.reasons import RejectionReason
from formulacode_dagster.models.repository import UNKNOWN_LANGUAGE, UNKNOWN_STARS, Repository, RepositoryState


class TrackingRules(Frozen):
    """Requirements for a repository that no person has allowed."""

    minimum_stars: int = 0
    languages: tuple[str, ...] = ()
    """GitHub's names of primary languages, in any case; empty: any language."""


def judge(repository: Repository, rules: TrackingRules, listed: ListedRepository | None) -> Rejection | None:
    """Why *repository* is not tracked in its month; None when it is.

    *listed* has people's decisions. A vanished repository is rejected only if it is denied: its absence is a failure,
    not a decision.
    """
    if listed is not None and listed.verdict is ListVerdict.DENY:
        return Rejection(RejectionReason.DENIED, listed.reason)
    if repository.state is RepositoryState.VANISHED:
        return None
    if repository.state is RepositoryState.EMPTY:
        return Rejection(RejectionReason.EMPTY, "it was never pushed to")
    if listed is not None:
        return None
    return _by_state(repository) or _by_stars(repository, rules) or _by_language(repository, rules)


def entry_for(repository: Repository, listed: Mapping[str, ListedRepository]) -> ListedRepository | None:
    """Return the entry of the list, by lower-case name, for *repository* under its name or an alias.

    The name it has now speaks before those it had, and of these a denial before a permission.
    """
    under_name = listed.get(repository.full_name.lower())
    if under_name is not None:
        return under_name
    under_aliases = [listed[alias.lower()] for alias in repository.aliases if alias.lower() in listed]
    return min(
        under_aliases, key=lambda listing: (listing.verdict is not ListVerdict.DENY, listing.full_name), default=None
    )


def not_among(listed: Mapping[str, ListedRepository], repositories: Iterable[Repository]) -> tuple[str, ...]:
    """Names on the list that no one of *repositories* has or had: discovery has yet to look for them."""
    names = {name.lower() for row in repositories for name in (row.full_name, *row.aliases)}
    return tuple(listing.full_name for name, listing in sorted(listed.items()) if name not in names)


def _by_state(repository: Repository) -> Rejection | None:
    if repository.state is RepositoryState.FORK:
        return Rejection(RejectionReason.FORK, "a fork of another repository")
    if repository.state is RepositoryState.PRIVATE:
        return Rejection(RejectionReason.PRIVATE, "not open to the public")
    if repository.state is RepositoryState.ARCHIVED:
        return _archived(repository)
    return None


def _archived(repository: Repository) -> Rejection | None:
    if repository.archived_at is None:
        return Rejection(RejectionReason.ARCHIVED, "since an unknown time")
    # archived repositories are read-only: nothing was merged since, and earlier merges still count
    if repository.archived_at >= Month.parse(repository.month).start:
        return None
    return Rejection(RejectionReason.ARCHIVED, f"on {repository.archived_at:%Y-%m-%d}, before {repository.month}")


def _by_stars(repository: Repository, rules: TrackingRules) -> Rejection | None:
    if repository.stars == UNKNOWN_STARS or repository.stars >= rules.minimum_stars:
        return None
    return Rejection(RejectionReason.FEW_STARS, f"{repository.stars} < {rules.minimum_stars}")


def _by_language(repository: Repository, rules: TrackingRules) -> Rejection | None:
    wanted = {language.lower() for language in (*rules.languages, UNKNOWN_LANGUAGE)}
    if not rules.languages or repository.language.lower() in wanted:
        return None
    return Rejection(
        RejectionReason.LANGUAGE, f"{repository.language or 'no language'} is none of {', '.join(rules.languages)}"
    )
