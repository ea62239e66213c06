"""The errors a refusal of GitHub's becomes, in GitHub's own words."""

from __future__ import annotations

import httpx

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure

from .tokens import SETTING

WORDS_SHOWN = 500

_KINDS = {"404": "vanished", "410": "vanished", "451": "vanished", "403": "forbidden"}


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
    """For a call that GitHub does not answer to anonymous callers."""
    return ConfigurationError(
        f"GitHub demands a token for {what}", why=words, remedy=f"Set {SETTING} (comma separated) in .env"
    )


def refusal(what: str, words: str) -> ItemFailure:
    """For a call that would be refused again; the kind follows from the status that *words* start with."""
    status = words[:3]
    kind = _KINDS.get(status, "request" if status.isdigit() else "graphql")
    return ItemFailure(kind, f"GitHub refuses {what} for good", why=words)
