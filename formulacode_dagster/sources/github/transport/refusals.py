"""The errors a refusal of GitHub's becomes, in GitHub's own words."""

from __future__ import annotations

import httpx

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.reasons import FailureKind

from .retry import Outcome, Verdict
from .tokens import SETTING

WORDS_SHOWN = 500

_KINDS = {
    404: FailureKind.VANISHED,
    410: FailureKind.VANISHED,
    451: FailureKind.VANISHED,
    403: FailureKind.FORBIDDEN,
    None: FailureKind.GRAPHQL,
}


def words_of(response: httpx.Response) -> str:
    """GitHub's own message, or the start of the body; with the status."""
    if response.is_success:
        return ""
    try:
        body = response.json()
        said = str(body.get("message", "")) if isinstance(body, dict) else ""
    except ValueError:
        said = " ".join(response.text.split())
    return f"{response.status_code} {said[:WORDS_SHOWN]}".strip()


def token_needed(what: str, words: str) -> ConfigurationError:
    """Failure of a call that GitHub does not answer anonymously."""
    return ConfigurationError(
        f"GitHub demands a token for {what}", why=words, remedy=f"Set {SETTING} (comma separated) in .env"
    )


def refusal(what: str, verdict: Verdict) -> ItemFailure:
    """Failure of a call that would be refused again; its kind follows from the status."""
    is_forbidden = verdict.outcome is Outcome.FORBIDDEN
    kind = FailureKind.FORBIDDEN if is_forbidden else _KINDS.get(verdict.status, FailureKind.REQUEST)
    return ItemFailure(kind, f"GitHub refuses {what} for good", why=verdict.words)
