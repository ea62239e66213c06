"""Permissions of each token, checked with that token itself, before a run needs it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.sources.github.queries import (
    CODE_SEARCH_PATH,
    INSTALLATION_PATH,
    PROBE,
    RATE_LIMIT_PATH,
    USER_PATH,
)

from .answers import Resource
from .client import GitHubTransport
from .retry import TransportRetries
from .tokens import SETTING, TokenPool

_INSTALLATION = "not accessible by integration"
RETRIES = TransportRetries(attempts=3, limit_waits=0)
"""This check does not wait out limits."""
NEEDED = "public_repo is enough for a classic token; a fine-grained one needs read access to public repositories"


@dataclass(frozen=True)
class Allowance:
    """State of a primary limit."""

    remaining: int
    limit: int
    reset: datetime


@dataclass(frozen=True)
class TokenReport:
    """One token: owner, remaining limits, and missing permissions in GitHub's words."""

    name: str
    login: str = ""
    dead: str = ""
    allowances: Mapping[Resource, Allowance] = field(default_factory=dict)
    unfit_for: Mapping[Resource, str] = field(default_factory=dict)
    limited: Mapping[Resource, str] = field(default_factory=dict)
    same_user_as: str = ""

    @property
    def is_good(self) -> bool:
        """Return True if it can be used for everything."""
        return not self.dead and not self.unfit_for

    def __str__(self) -> str:
        if self.dead:
            return f"{self.name} is set aside: {self.dead}"
        owner = f" ({self.login})" if self.login else ""
        if self.same_user_as:
            left = f"shares the limits of {self.same_user_as}"
        else:
            left = ", ".join(
                f"{resource} {allowance.remaining:,} of {allowance.limit:,} until {allowance.reset:%H:%M} UTC"
                for resource, allowance in self.allowances.items()
            )
            left = left or "no limits"
        unfit = [f"; no right to {resource}, set aside for it: {words}" for resource, words in self.unfit_for.items()]
        limited = [f"; {resource} not tried: {words}" for resource, words in self.limited.items()]
        return f"{self.name}{owner}: {left}{''.join(unfit + limited)}"


async def examine(
    url: str, tokens: Sequence[str], *, home: Path | None = None, on_trouble: Callable[[str], None] | None = None
) -> tuple[TokenReport, ...]:
    """A report on each token, in their order. Whose they are is remembered in *home*, for all clients there.

    Raises OutsideSystemError when GitHub is dead, ConfigurationError when a text cannot be a token.
    """
    tokens = list(dict.fromkeys(tokens))
    TokenPool(tokens)
    names = [f"token {position + 1} of {len(tokens)}" for position in range(len(tokens))]
    reports = await asyncio.gather(*(_examine(url, name, token) for name, token in zip(names, tokens, strict=True)))
    async with GitHubTransport(url, tokens, home=home, on_trouble=on_trouble) as client:
        for position, report in enumerate(reports):
            if report.login:
                await client.learn_owner(position, report.login)
    first: dict[str, str] = {}
    for report in reports:
        first.setdefault(report.login.lower(), report.name)
    return tuple(
        replace(report, same_user_as=first[report.login.lower()])
        if report.login and first[report.login.lower()] != report.name
        else report
        for report in reports
    )


async def _examine(url: str, name: str, token: str) -> TokenReport:
    # separate from the shared limits: else another token might answer, or a pause apply
    async with GitHubTransport(url, [token], retries=RETRIES) as client:
        try:
            allowances: dict[Resource, Allowance] | None = _allowances((await client.rest(RATE_LIMIT_PATH)).data)
        except ConfigurationError:
            return TokenReport(name, dead=client.tokens()[0].set_aside)
        except ItemFailure as failure:
            # an Enterprise Server without limits answers 404
            if failure.kind != FailureKind.VANISHED:
                raise
            allowances = None
        login = ""
        unfit: dict[Resource, str] = {}
        limited: dict[Resource, str] = {}
        for resource, ask in _PROBES.items():
            left = allowances.get(resource) if allowances is not None else None
            if allowances is not None and left is None:
                unfit[resource] = f"GitHub lists no limit for it; {NEEDED}"
            elif left is not None and left.remaining == 0:
                limited[resource] = "it is exhausted"
            else:
                try:
                    login = await ask(client) or login
                except ItemFailure as failure:
                    unfit[resource] = f"{failure.why}; {NEEDED}"
                except ConfigurationError:
                    unfit[resource] = client.tokens()[0].set_aside
                except OutsideSystemError as error:
                    if not client.totals.limit_hits:
                        raise
                    limited[resource] = error.why
        return TokenReport(name, login, "", allowances or {}, unfit, limited)


async def _core(client: GitHubTransport) -> str:
    try:
        return str((await client.rest(USER_PATH)).data["login"])
    except ItemFailure as failure:
        if failure.kind != FailureKind.FORBIDDEN or _INSTALLATION not in failure.why:
            raise
    # the token of an App's installation is no user's; GraphQL names the App's bot
    await client.rest(INSTALLATION_PATH, {"per_page": 1})
    return ""


async def _graphql(client: GitHubTransport) -> str:
    return str((await client.graphql(PROBE)).data["viewer"]["login"])


async def _search(client: GitHubTransport) -> str:
    await client.rest(CODE_SEARCH_PATH, {"q": "filename:asv.conf.json", "per_page": 1})
    return ""


_PROBES = {Resource.CORE: _core, Resource.GRAPHQL: _graphql, Resource.CODE_SEARCH: _search}


def _allowances(data: Mapping[str, Any]) -> dict[Resource, Allowance]:
    resources = data["resources"]
    return {
        resource: Allowance(
            int(resources[resource]["remaining"]),
            int(resources[resource]["limit"]),
            datetime.fromtimestamp(resources[resource]["reset"], tz=UTC),
        )
        for resource in Resource
        if resource.value in resources
    }


def verdict(url: str, reports: Sequence[TokenReport]) -> tuple[bool, str]:
    """Return whether all tokens can be used for everything, and a line for each.

    Raises ConfigurationError when no token is left for something that intake needs.
    """
    for resource in _PROBES:
        if reports and all(report.dead or resource in report.unfit_for for report in reports):
            raise ConfigurationError(
                f"{url}: no token in {SETTING} has a right to {resource}",
                why="; ".join(map(str, reports)),
                remedy="Replace them by valid ones",
            )
    good = sum(report.is_good for report in reports)
    lines = [f"{url} answers, {good} of {len(reports)} tokens are good", *map(str, reports)]
    return good == len(reports), "\n    ".join(lines)
