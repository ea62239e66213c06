from __future__ import annotations

import json

import pytest

from formulacode_dagster.building.agents.wire import (
    Tokens,
    Wire,
    beyond_the_agent,
    is_allowed,
    is_answer,
    most_tokens,
    read_request,
    tokens_of,
)


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
    assert beyond_the_agent(wire, {"tools": tools}) == remote


PROPERTIES = {"properties": {"image_url": {"type": "string"}, "source": {"type": "object"}, "url": {}}}


@pytest.mark.parametrize(
    ("wire", "asked", "beyond"),
    [
        (
            Wire.ANTHROPIC,
            {"mcp_servers": [{"url": "x"}], "container": None, "tools": {"a": 1}},
            ["tools", "mcp_servers"],
        ),
        (Wire.ANTHROPIC, {"messages": [{"content": [{"source": {"type": "url", "url": "x"}}]}]}, ["source"]),
        (Wire.ANTHROPIC, {"messages": [{"content": [{"content": [{"source": {"type": "file"}}]}]}]}, ["source"]),
        (Wire.ANTHROPIC, {"messages": [{"content": [{"source": {"type": "base64", "data": "eA=="}}]}]}, []),
        (Wire.ANTHROPIC, {"messages": [{"content": [{"input": {"url": "https://x", "source": "x"}}]}]}, []),
        (Wire.RESPONSES, {"background": True, "prompt": {"id": "x"}}, ["background", "prompt"]),
        (Wire.RESPONSES, {"background": False, "prompt_cache_key": "x"}, []),
        (
            Wire.RESPONSES,
            {"input": [{"content": [{"image_url": "https://x"}, {"file_url": "x"}]}]},
            ["image_url", "file_url"],
        ),
        (Wire.RESPONSES, {"input": [{"image_url": {"url": "https://x"}}, {"image_url": "x"}]}, ["image_url"]),
        (Wire.RESPONSES, {"input": [{"file_id": "file-1"}]}, ["file_id"]),
        (Wire.RESPONSES, {"input": [{"image_url": "data:image/png;base64,eA=="}]}, []),
        (Wire.RESPONSES, {"tools": [{"type": "function", "parameters": PROPERTIES}]}, []),
        (Wire.GEMINI, {"contents": [{"parts": [{"fileData": {"fileUri": "https://x"}}]}]}, ["fileData"]),
        (Wire.GEMINI, {"contents": [{"parts": [{"file_data": {"file_uri": "x"}}]}]}, ["file_data"]),
        (Wire.GEMINI, {"contents": [{"parts": [{"inlineData": {"data": "eA=="}}]}]}, []),
    ],
)
def test_parts_for_which_the_endpoint_acts_are_named(wire: Wire, asked: dict[str, object], beyond: list[str]) -> None:
    assert sorted(beyond_the_agent(wire, asked)) == sorted(beyond)


@pytest.mark.parametrize("request_", [b"no JSON", b"[]", b"[" * 100_000, b'{"a": ' * 100_000])
def test_only_an_object_is_a_request(request_: bytes) -> None:
    with pytest.raises(ValueError, match=r"Expecting|no object|nested too deep"):
        read_request(request_)


@pytest.mark.parametrize(
    ("wire", "asked", "made"),
    [
        (Wire.ANTHROPIC, {"max_tokens": 500}, 500),
        (Wire.RESPONSES, {"max_output_tokens": 600}, 600),
        (Wire.GEMINI, {"generationConfig": {"maxOutputTokens": 700}}, 700),
        (Wire.GEMINI, {"generation_config": {"max_output_tokens": 800}}, 800),
        (Wire.RESPONSES, {"max_output_tokens": None}, 32_000),
        (Wire.GEMINI, {"generationConfig": []}, 32_000),
        (Wire.ANTHROPIC, {"max_tokens": -(10**9)}, 32_000),
    ],
)
def test_a_request_takes_at_most_its_size_and_the_longest_answer(
    wire: Wire, asked: dict[str, object], made: int
) -> None:
    assert most_tokens(wire, asked, 4000) == Tokens(1000, made)


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
