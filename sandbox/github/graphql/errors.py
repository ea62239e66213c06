"""Errors in GitHub's form: a `type` next to `message` and `path`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from graphql import GraphQLError


class AnswerError(Exception):
    """A resolver's refusal; `type` is GitHub's error type. The field becomes null."""

    def __init__(self, kind: str, message: str) -> None:
        self.type = kind
        super().__init__(message)


def not_found(what: str) -> AnswerError:
    """The refusal of something that was asked for by name, number or id and is not there."""
    return AnswerError("NOT_FOUND", f"Could not resolve to {what}")


def forbidden() -> AnswerError:
    """The refusal of what an organization shows only to tokens that it has accepted."""
    return AnswerError(
        "FORBIDDEN",
        "Resource protected by organization SAML enforcement. You must grant your Personal Access token access to this"
        " organization.",
    )


class QueryRefused(Exception):
    """The whole query is refused before it is executed."""

    def __init__(self, kind: str, message: str) -> None:
        self.type = kind
        super().__init__(message)

    def answer(self) -> dict[str, Any]:
        """The body of the answer."""
        return {"errors": [{"type": self.type, "message": str(self)}]}


def error_json(error: GraphQLError) -> dict[str, Any]:
    """*error* as GitHub writes it."""
    said: dict[str, Any] = {}
    if isinstance(error.original_error, AnswerError) and error.original_error.type:
        said["type"] = error.original_error.type
    if error.path:
        said["path"] = list(error.path)
    if error.locations:
        said["locations"] = [{"line": place.line, "column": place.column} for place in error.locations]
    return said | {"message": error.message}
