"""Responses of a handler, and GitHub's messages of refusal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

DOCS = "https://docs.github.com/rest"
_LIMITS = "https://docs.github.com/rest/using-the-rest-api/rate-limits-for-the-rest-api"
_NO_RIGHT = "Resource not accessible by personal access token"
JSON = "application/json; charset=utf-8"


@dataclass(frozen=True)
class Answer:
    """Status, body and headers of one answer."""

    status: int
    body: bytes
    media_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)

    def data(self) -> Any:
        """The body, parsed."""
        return json.loads(self.body)


class EarlyAnswer(Exception):
    """The path does not exist here; `answer` redirects, or is a 404."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        super().__init__(answer.status)


def ok(data: Any, headers: Mapping[str, str] | None = None) -> Answer:
    """200 with JSON."""
    return Answer(200, encode(data), headers=headers or {})


def refusal(
    status: int, message: str, *, docs: str = DOCS, errors: Sequence[Mapping[str, str]] = (), **headers: str
) -> Answer:
    """An error in GitHub's form. Header names are written with underscores."""
    body: dict[str, Any] = {"message": message, "documentation_url": docs, "status": str(status)}
    if errors:
        body["errors"] = [dict(error) for error in errors]
    return Answer(status, encode(body), headers={name.replace("_", "-"): value for name, value in headers.items()})


def not_found() -> Answer:
    """404, also for resources the caller may not see."""
    return refusal(404, "Not Found")


def moved(location: str) -> Answer:
    """301 of a renamed repository."""
    body = {"message": "Moved Permanently", "url": location, "documentation_url": DOCS}
    return Answer(301, encode(body), headers={"location": location})


def invalid_search(message: str) -> Answer:
    """422 of a search that cannot be read."""
    error = {"message": message, "resource": "Search", "field": "q", "code": "invalid"}
    return refusal(422, "Validation Failed", errors=[error])


def primary_limit(user: str, *, graphql: bool) -> Answer:
    """When the hour's budget is used up: 403 of REST, HTTP 200 of GraphQL."""
    said = f"API rate limit exceeded for {user}."
    if graphql:
        return ok({"errors": [{"type": "RATE_LIMIT", "code": "graphql_rate_limit", "message": said}]})
    return refusal(403, f"{said} If you reach out to GitHub Support, please include the request ID.", docs=_LIMITS)


def secondary_limit(retry_after: int | None) -> Answer:
    """403 of a burst; without *retry_after* the header is left out."""
    message = (
        "You have exceeded a secondary rate limit. Please wait a few minutes before you try again. "
        "If you reach out to GitHub Support for help, please include the request ID."
    )
    docs = f"{_LIMITS}#about-secondary-rate-limits"
    if retry_after is None:
        return refusal(403, message, docs=docs)
    return refusal(403, message, docs=docs, retry_after=str(retry_after))


def bad_credentials() -> Answer:
    """401 of a token that is none."""
    return refusal(401, "Bad credentials")


def authentication_required() -> Answer:
    """401 for resources that need a token."""
    return refusal(401, "Requires authentication")


def forbidden(*, graphql: bool) -> Answer:
    """For a token without permission: 403 in REST, HTTP 200 in GraphQL."""
    if graphql:
        return ok({"data": None, "errors": [{"type": "FORBIDDEN", "message": _NO_RIGHT}]})
    return refusal(403, _NO_RIGHT)


def bad_gateway() -> Answer:
    """502 of the proxy before the API: HTML."""
    page = b"<html>\n<head><title>502 Bad Gateway</title></head>\n<body><h1>502 Bad Gateway</h1></body>\n</html>\n"
    return Answer(502, page, "text/html")


def encode(data: Any) -> bytes:
    """Compact JSON."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()
