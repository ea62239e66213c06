"""Asks the sandbox GitHub without a server in between."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from starlette.testclient import TestClient


@dataclass
class Caller:
    """Asks the app, with a token."""

    http: TestClient

    def query(self, text: str, **variables: Any) -> dict[str, Any]:
        """The whole answer of a GraphQL query."""
        answer = self.http.post("/graphql", json={"query": text, "variables": variables})
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    def data(self, text: str, **variables: Any) -> dict[str, Any]:
        """The data of a GraphQL query that must succeed."""
        answer = self.query(text, **variables)
        assert "errors" not in answer, answer["errors"]
        told: dict[str, Any] = answer["data"]
        return told

    def get(self, path: str, accept: str = "application/json", **parameters: Any) -> Any:
        return self.http.get(path, params=parameters or None, headers={"accept": accept}, follow_redirects=False)

    @property
    def books(self) -> dict[str, Any]:
        told: dict[str, Any] = self.http.get("/_sandbox/calls").json()
        return told
