"""The three protocols by which agents call models: the allowed requests, and the usage that an answer reports."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Wire(StrEnum):
    """A model's protocol."""

    ANTHROPIC = "anthropic"
    """https://docs.anthropic.com/en/api/messages"""
    RESPONSES = "responses"
    """https://platform.openai.com/docs/api-reference/responses"""
    GEMINI = "gemini"
    """https://ai.google.dev/api/generate-content"""


_ANSWERS = {
    Wire.ANTHROPIC: re.compile(r"/v1/messages"),
    Wire.RESPONSES: re.compile(r"(/v1)?/responses"),
    Wire.GEMINI: re.compile(r"/v1(beta|alpha)?/models/[\w.-]+:(stream)?[gG]enerateContent"),
}
_COUNTS = {
    Wire.ANTHROPIC: re.compile(r"/v1/messages/count_tokens"),
    Wire.RESPONSES: re.compile(r"(?!)"),
    Wire.GEMINI: re.compile(r"/v1(beta|alpha)?/models/[\w.-]+:countTokens"),
}
KEY_HEADERS = {
    Wire.ANTHROPIC: ("x-api-key", "{}"),
    Wire.RESPONSES: ("authorization", "Bearer {}"),
    Wire.GEMINI: ("x-goog-api-key", "{}"),
}
_OWN_TOOLS = {
    Wire.ANTHROPIC: frozenset({"", "custom"}),
    Wire.RESPONSES: frozenset({"function", "custom", "local_shell", "namespace", "tool_search"}),
}
"""Types of tools that the agent runs itself. Others the endpoint runs: they search and fetch, past the confinement."""


_NOT_OURS = frozenset({"background", "container", "mcpservers", "prompt"})
_FETCHED = {
    Wire.ANTHROPIC: frozenset({"source"}),
    Wire.RESPONSES: frozenset({"fileid", "fileurl", "imageurl"}),
    Wire.GEMINI: frozenset({"filedata"}),
}
_LONGEST = frozenset({"maxtokens", "maxoutputtokens"})
_BYTES_PER_TOKEN = 4
_USUAL_ANSWER = 32_000
"""Tokens of the longest answer to a request that names no limit."""


@dataclass(frozen=True)
class Tokens:
    """Usage of answers."""

    given: int = 0
    made: int = 0

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(self.given + other.given, self.made + other.made)

    def __sub__(self, other: Tokens) -> Tokens:
        return Tokens(self.given - other.given, self.made - other.made)


def is_answer(wire: Wire, path: str) -> bool:
    """Return True if *path*, without its query, requests an answer, which costs money."""
    return _ANSWERS[wire].fullmatch(path) is not None


def is_allowed(wire: Wire, path: str) -> bool:
    """Return True if an agent may request *path*: an answer or a token count, and nothing else that a key opens."""
    return is_answer(wire, path) or _COUNTS[wire].fullmatch(path) is not None


def read_request(request: bytes) -> dict[str, Any]:
    """Return the JSON object *request*; raises ValueError for anything else."""
    try:
        asked = json.loads(request)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if not isinstance(asked, dict):
        raise ValueError("no object")
    return asked


def beyond_the_agent(wire: Wire, asked: Mapping[str, Any]) -> list[str]:
    """Return the parts of a request for which the endpoint would act on the agent's behalf.

    It would run tools, fetch addresses, open files and prompts of the key, or answer later, when nothing is counted.
    """
    named = [name for name, value in asked.items() if value and _plain(name) in _NOT_OURS]
    return [*_remote_tools(wire, asked), *named, *dict.fromkeys(_fetched(wire, asked))]


def most_tokens(wire: Wire, asked: Mapping[str, Any], size: int) -> Tokens:
    """Return an estimate of the tokens that a request of *size* bytes takes, with the longest answer it allows."""
    holder = asked
    if wire is Wire.GEMINI:
        configured = asked.get("generationConfig", asked.get("generation_config"))
        holder = configured if isinstance(configured, dict) else {}
    limits = [
        value for name, value in holder.items() if _plain(name) in _LONGEST and isinstance(value, int) and value > 0
    ]
    return Tokens(size // _BYTES_PER_TOKEN, max(limits, default=_USUAL_ANSWER))


def _remote_tools(wire: Wire, asked: Mapping[str, Any]) -> list[str]:
    tools = asked.get("tools")
    if not isinstance(tools, list):
        return ["tools"] if tools else []
    named = [tool for tool in tools if isinstance(tool, dict)]
    if wire is Wire.GEMINI:
        return [key for tool in named for key in tool if key not in ("functionDeclarations", "function_declarations")]
    # a namespace holds further tools
    nested = [inner for tool in named for inner in tool.get("tools") or () if isinstance(inner, dict)]
    types = [str(tool.get("type", "")) for tool in (*named, *nested)]
    return [kind for kind in types if kind not in _OWN_TOOLS[wire]]


def _fetched(wire: Wire, asked: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys, anywhere in a request, whose content the endpoint has to fetch."""
    pending: list[Any] = [asked]
    while pending:
        item = pending.pop()
        if isinstance(item, list):
            pending.extend(item)
        elif isinstance(item, dict):
            pending.extend(item.values())
            for name, value in item.items():
                if _plain(name) in _FETCHED[wire] and _is_elsewhere(wire, value):
                    yield name


def _is_elsewhere(wire: Wire, value: object) -> bool:
    if wire is Wire.ANTHROPIC:
        return isinstance(value, dict) and value.get("type") in ("file", "url")
    if wire is Wire.GEMINI:
        return bool(value)
    # in the schema of a tool, the same names have objects without an address
    address = value.get("url") if isinstance(value, dict) else value
    return isinstance(address, str) and not address.startswith("data:")


def _plain(name: str) -> str:
    """`fileUri` as `file_uri`: Google's endpoint takes both."""
    return name.replace("_", "").lower()


def tokens_of(wire: Wire, answer: bytes) -> Tokens:
    """Return the usage that *answer*, JSON or an event stream, reports; the newest figures of a stream count."""
    usage: dict[str, int] = {}
    for message in _messages(answer):
        usage |= _usage(wire, message)
    if wire is Wire.ANTHROPIC:
        given = sum(usage.get(name, 0) for name in _ANTHROPIC_IN)
        return Tokens(given, usage.get("output_tokens", 0))
    if wire is Wire.RESPONSES:
        return Tokens(usage.get("input_tokens", 0), usage.get("output_tokens", 0))
    made = usage.get("candidatesTokenCount", 0) + usage.get("thoughtsTokenCount", 0)
    return Tokens(usage.get("promptTokenCount", 0), made)


_ANTHROPIC_IN = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def _messages(answer: bytes) -> Iterator[Mapping[str, Any]]:
    text = answer.decode(errors="replace")
    lines = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")] or [text]
    for line in lines:
        try:
            message = json.loads(line)
        except ValueError:
            continue
        for part in message if isinstance(message, list) else [message]:
            if isinstance(part, dict):
                yield part


def _usage(wire: Wire, message: Mapping[str, Any]) -> dict[str, int]:
    outer = message.get("response", message.get("message", message))
    found = message.get("usageMetadata") if wire is Wire.GEMINI else message.get("usage")
    if found is None and isinstance(outer, dict):
        found = outer.get("usageMetadata" if wire is Wire.GEMINI else "usage")
    if not isinstance(found, dict):
        return {}
    return {name: value for name, value in found.items() if isinstance(value, int)}
