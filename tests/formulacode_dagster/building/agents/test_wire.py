from __future__ import annotations

import json

import pytest

from formulacode_dagster.building.agents.wire import Tokens, Wire, is_allowed, is_answer, remote_tools, tokens_of


@pytest.mark.parametrize(
    ("wire", "path", "answers"),
    [
        (Wire.ANTHROPIC, "/v1/messages", True),
        (Wire.ANTHROPIC, "/v1/messages/count_tokens", False),
        (Wire.RESPONSES, "/v1/responses", True),
        (Wire.GEMINI, "/v1beta/models/gemini-2.5-pro:streamGenerateContent", True),
        (Wire.GEMINI, "/v1beta/models/gemini-2.5-pro:countTokens", False),
    ],
)
def test_answers_and_counts_may_be_asked_for(wire: Wire, path: str, answers: bool) -> None:
    assert is_allowed(wire, path)
    assert is_answer(wire, path) is answers


@pytest.mark.parametrize(
    ("wire", "path"),
    [
        (Wire.ANTHROPIC, "/v1/messages/batches"),
        (Wire.ANTHROPIC, "/v1/files"),
        (Wire.RESPONSES, "/v1/responses/resp_1"),
        (Wire.RESPONSES, "/v1/files"),
        (Wire.GEMINI, "/upload/v1beta/files"),
        (Wire.GEMINI, "/v1beta/models/../files/x:generateContent"),
    ],
)
def test_nothing_else_of_the_key_can_be_reached(wire: Wire, path: str) -> None:
    assert not is_allowed(wire, path)


@pytest.mark.parametrize(
    ("wire", "tools", "remote"),
    [
        (Wire.ANTHROPIC, [{"name": "Bash"}, {"type": "custom", "name": "Edit"}], []),
        (Wire.ANTHROPIC, [{"type": "web_fetch_20250910", "name": "web_fetch"}], ["web_fetch_20250910"]),
        (Wire.RESPONSES, [{"type": "function"}, {"type": "web_search"}], ["web_search"]),
        (Wire.RESPONSES, [{"type": "namespace", "tools": [{"type": "mcp"}, {"type": "function"}]}], ["mcp"]),
        (Wire.GEMINI, [{"functionDeclarations": []}, {"googleSearch": {}}], ["googleSearch"]),
        (Wire.GEMINI, [{"urlContext": {}}], ["urlContext"]),
    ],
)
def test_tools_that_the_endpoint_runs_are_named(wire: Wire, tools: list[object], remote: list[str]) -> None:
    assert remote_tools(wire, json.dumps({"tools": tools}).encode()) == remote


def test_servers_that_the_endpoint_asks_are_named() -> None:
    asked = json.dumps({"mcp_servers": [{"url": "x"}]}).encode()
    assert remote_tools(Wire.ANTHROPIC, asked) == ["mcp_servers"]
    with pytest.raises(ValueError, match="Expecting"):
        remote_tools(Wire.ANTHROPIC, b"no JSON")


def _events(*events: object) -> bytes:
    return b"".join(b"event: x\ndata: " + json.dumps(event).encode() + b"\n\n" for event in events)


ANTHROPIC_EVENTS = _events(
    {"message": {"usage": {"input_tokens": 7, "cache_read_input_tokens": 100, "output_tokens": 1}}},
    {"delta": {}, "usage": {"output_tokens": 30}},
)
GEMINI_USAGE = {"promptTokenCount": 9, "candidatesTokenCount": 2, "thoughtsTokenCount": 4}


@pytest.mark.parametrize(
    ("wire", "answer", "tokens"),
    [
        (Wire.ANTHROPIC, ANTHROPIC_EVENTS, Tokens(107, 30)),
        (Wire.ANTHROPIC, b'{"usage": {"input_tokens": 5, "output_tokens": 6}}', Tokens(5, 6)),
        (
            Wire.RESPONSES,
            _events({"response": {}}, {"response": {"usage": {"input_tokens": 3, "output_tokens": 4}}}),
            Tokens(3, 4),
        ),
        (Wire.GEMINI, _events({"usageMetadata": GEMINI_USAGE}), Tokens(9, 6)),
        (Wire.GEMINI, json.dumps([{}, {"usageMetadata": GEMINI_USAGE}]).encode(), Tokens(9, 6)),
        (Wire.GEMINI, b"\xff no answer", Tokens()),
    ],
)
def test_an_answer_says_what_it_took(wire: Wire, answer: bytes, tokens: Tokens) -> None:
    assert tokens_of(wire, answer) == tokens
