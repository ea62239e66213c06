"""One question as a request to `/chat/completions`, in the form that an endpoint understands.

Servers that call themselves OpenAI-compatible differ in how they take a schema, in the name of the token limit, and in
whether they let a caller set the temperature.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import AfterValidator

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.completion import OutputMode


def _escaped(text: str) -> str:
    """Return *text* with escapes for surrogates, which no request can contain: names of files may be any bytes."""
    return text.encode("utf-8", "backslashreplace").decode()


class Message(Frozen):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: Annotated[str, AfterValidator(_escaped)]


class TokenField(StrEnum):
    """The names of the limit of an answer's tokens."""

    MAX_COMPLETION_TOKENS = "max_completion_tokens"
    MAX_TOKENS = "max_tokens"

    @property
    def other(self) -> TokenField:
        """The one that a server takes which does not take this one."""
        return TokenField.MAX_TOKENS if self is TokenField.MAX_COMPLETION_TOKENS else TokenField.MAX_COMPLETION_TOKENS


class Capabilities(Frozen):
    """Capabilities of one model at one address."""

    mode: OutputMode = OutputMode.JSON_SCHEMA
    token_field: TokenField = TokenField.MAX_COMPLETION_TOKENS
    takes_temperature: bool = True

    def without(self, complaint: str) -> Capabilities | None:
        """Return the capabilities of a server that rejected a request with *complaint*; None if it names none of the
        sent fields.
        """
        if re.search(rf"\b{self.token_field}\b", complaint):
            return self.model_copy(update={"token_field": self.token_field.other})
        if self.takes_temperature and re.search(r"\btemperature\b", complaint, re.IGNORECASE):
            return self.model_copy(update={"takes_temperature": False})
        return None

    def request(
        self,
        messages: Sequence[Message],
        name: str,
        schema: dict[str, Any],
        *,
        max_tokens: int,
        temperature: float | None,
    ) -> dict[str, Any]:
        """Arguments of the client's call for an answer that follows *schema*, called *name*; without the model."""
        request: dict[str, Any] = {self.token_field.value: max_tokens}
        if temperature is not None and self.takes_temperature:
            request["temperature"] = temperature
        match self.mode:
            case OutputMode.JSON_SCHEMA:
                form = {"name": name, "schema": schema, "strict": True}
                request["response_format"] = {"type": "json_schema", "json_schema": form}
            case OutputMode.TOOLS:
                request["tools"] = [{"type": "function", "function": {"name": name, "parameters": schema}}]
                request["tool_choice"] = {"type": "function", "function": {"name": name}}
            case OutputMode.JSON_OBJECT:
                request["response_format"] = {"type": "json_object"}
        if self.mode in (OutputMode.JSON_OBJECT, OutputMode.PLAIN):
            messages = _with_schema(messages, schema)
        return {**request, "messages": [message.model_dump() for message in messages]}


def _with_schema(messages: Sequence[Message], schema: dict[str, Any]) -> list[Message]:
    # some servers reject `json_object` unless a message contains the word JSON
    form = f"Answer with nothing but one JSON object that follows this JSON schema:\n{json.dumps(schema)}"
    first, *rest = messages
    if first.role == "system":
        return [Message(role="system", content=f"{first.content}\n{form}"), *rest]
    return [Message(role="system", content=form), *messages]
