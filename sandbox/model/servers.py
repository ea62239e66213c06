"""Questions that a server takes, and the place of its answers: as those of OpenAI's own."""

from __future__ import annotations

from typing import Any


class Server:
    """OpenAI's own server; those of others are described in the tests."""

    def complaint(self, question: dict[str, Any]) -> tuple[int, str, str] | None:  # noqa: ARG002 - others refuse some
        """Return status, message and code of its refusal of *question*; None if it accepts it."""
        return None

    def message(self, question: dict[str, Any], content: str) -> dict[str, Any]:
        """The message with the answer *content* to *question*."""
        if not question.get("tools"):
            return {"content": content}
        function = {"name": question["tools"][0]["function"]["name"], "arguments": content}
        return {"content": None, "tool_calls": [{"id": "call-1", "type": "function", "function": function}]}
