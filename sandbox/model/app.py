"""The HTTP side of the sandbox model: `/v1/chat/completions`, `/v1/models`, and `/_sandbox/calls` for the books."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from .benchmarks import write_benchmark
from .faults import Fault, ModelFaults
from .rules import judge

MODEL = "sandbox-rules"
"""The one model there is; another name is answered with 404, as a real endpoint does."""

_POLL_SECONDS = 0.05
_CHARACTERS_PER_TOKEN = 4

_REFUSALS = {
    Fault.RATE_LIMITED: (429, "rate limit reached", "rate_limit_exceeded"),
    Fault.OUT_OF_QUOTA: (429, "you exceeded your current quota", "insufficient_quota"),
    Fault.SERVER_ERROR: (500, "the server had an error", "server_error"),
    Fault.BAD_REQUEST: (400, "maximum context length exceeded", "context_length_exceeded"),
    Fault.HANG: (503, "nobody waited for this", "server_error"),
}
"""Status, words and code of the faults that are no answer."""


def app(faults: ModelFaults | None = None, *, api_key: str | None = None) -> Starlette:
    """An OpenAI-compatible endpoint that answers by `rules`.

    *faults* says which calls go wrong. With *api_key*, another key is answered with 401; without, any key will do.
    """
    endpoint = _Endpoint(faults or ModelFaults(), api_key)
    return Starlette(
        routes=[
            Route("/v1/chat/completions", endpoint.complete, methods=["POST"]),
            Route("/v1/models", endpoint.models),
            Route("/_sandbox/calls", endpoint.calls),
        ]
    )


@dataclass
class _Endpoint:
    faults: ModelFaults
    api_key: str | None
    called: int = 0
    answered: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    failed: Counter[str] = field(default_factory=Counter)

    async def models(self, request: Request) -> JSONResponse:
        if refusal := self._unauthorized(request):
            return refusal
        return JSONResponse(
            {"object": "list", "data": [{"id": MODEL, "object": "model", "created": 0, "owned_by": "sandbox"}]}
        )

    async def calls(self, request: Request) -> JSONResponse:  # noqa: ARG002 - the route's signature
        return JSONResponse(
            {
                "chat_completions": self.called,
                "answered": self.answered,
                "faults": dict(self.failed),
                "tokens_in": self.tokens_in,
                "tokens_out": self.tokens_out,
            }
        )

    async def complete(self, request: Request) -> JSONResponse:
        if refusal := self._unauthorized(request):
            return refusal
        self.called += 1
        call, fault = self.called, self.faults.of(self.called)
        if fault is not None:
            self.failed[fault.value] += 1
            if failure := await self._fail(request, fault):
                return failure
        try:
            question = await request.json()
            messages = [
                {"role": str(message["role"]), "content": _text_of(message["content"])}
                for message in question["messages"]
            ]
        except (ValueError, KeyError, TypeError) as error:
            return _error(400, f"the request is malformed: {error!r}", "invalid_request_error")
        if question.get("model") != MODEL:
            return _error(404, f"The model `{question.get('model')}` does not exist", "model_not_found")
        if question.get("stream"):
            return _error(400, "the sandbox does not stream", "unsupported_value")
        asked = _fields(question.get("response_format"))
        if "is_performance" in asked:
            content = judge(*_material(messages)).model_dump_json()
        elif "code" in asked:
            content = write_benchmark(messages[-1]["content"])
        else:
            words = "the sandbox classifies pull requests and writes benchmarks; it does not know this schema"
            return _error(400, words, "unsupported_value")
        tokens_in = sum(len(message["content"]) for message in messages) // _CHARACTERS_PER_TOKEN
        return self._answer(call, content, tokens_in, fault)

    def _answer(self, call: int, content: str, tokens_in: int, fault: Fault | None) -> JSONResponse:
        message: dict[str, Any] = {"role": "assistant", "content": _spoilt(content, fault), "refusal": None}
        if fault is Fault.REFUSAL:
            message |= {"content": None, "refusal": "sandbox fault: I would rather not say."}
        tokens_out = len(message["content"] or message["refusal"]) // _CHARACTERS_PER_TOKEN
        self.answered += 1
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out
        finish = "length" if fault is Fault.LENGTH else "stop"
        return JSONResponse(
            {
                "id": f"chatcmpl-sandbox-{call}",
                "object": "chat.completion",
                "created": 0,
                "model": MODEL,
                "system_fingerprint": MODEL,
                "choices": [{"index": 0, "message": message, "finish_reason": finish, "logprobs": None}],
                "usage": {
                    "prompt_tokens": tokens_in,
                    "completion_tokens": tokens_out,
                    "total_tokens": tokens_in + tokens_out,
                },
            }
        )

    async def _fail(self, request: Request, fault: Fault) -> JSONResponse | None:
        if fault is Fault.HANG:
            for _ in range(int(self.faults.hang_seconds / _POLL_SECONDS)):
                # a handler that outlives its client would keep the server from stopping
                if await request.is_disconnected():
                    break
                await asyncio.sleep(_POLL_SECONDS)
        if fault not in _REFUSALS:
            return None
        status, words, code = _REFUSALS[fault]
        limited = fault is Fault.RATE_LIMITED
        headers = {"Retry-After": f"{self.faults.retry_after_seconds:g}"} if limited else None
        return _error(status, f"sandbox fault: {words}", code, headers)

    def _unauthorized(self, request: Request) -> JSONResponse | None:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if scheme == "Bearer" and key and self.api_key in (None, key):
            return None
        # as a real endpoint does, this echoes the key: a client must not repeat it
        return _error(401, f"Incorrect API key provided: {key}", "invalid_api_key")


def _error(status: int, message: str, code: str, headers: dict[str, str] | None = None) -> JSONResponse:
    kind = "server_error" if status >= 500 else "invalid_request_error"
    return JSONResponse(
        {"error": {"message": message, "type": kind, "param": None, "code": code}}, status_code=status, headers=headers
    )


def _text_of(content: Any) -> str:
    return content if isinstance(content, str) else "".join(part["text"] for part in content if part["type"] == "text")


def _fields(response_format: dict[str, Any] | None) -> frozenset[str]:
    """Of the answer that is asked for; without a schema, those of a classification."""
    if response_format is None or response_format.get("type") != "json_schema":
        return frozenset({"is_performance"})
    return frozenset(response_format["json_schema"].get("schema", {}).get("properties", {}))


def _material(messages: list[dict[str, str]]) -> tuple[str, str, str]:
    """Title, body and patch from the tags of our prompt; without tags, the first line, the rest, and no patch."""
    text = "\n".join(message["content"] for message in messages if message["role"] == "user")
    found = [
        match[2].strip() if (match := re.search(rf"<({tag}(?:-\w+)?)>\n?(.*?)</\1>", text, re.DOTALL)) else None
        for tag in ("title", "body", "patch")
    ]
    if found[0] is None:
        title, _, body = text.strip().partition("\n")
        return title, body, ""
    return found[0], found[1] or "", found[2] or ""


def _spoilt(content: str, fault: Fault | None) -> str:
    match fault:
        case Fault.GARBAGE:
            return "Well, it depends on what you call fast."
        case Fault.TRUNCATED | Fault.LENGTH:
            return content[: len(content) // 2]
        case Fault.WRONG_SCHEMA:
            return json.dumps({**json.loads(content), "category": "magic"})
        case Fault.INVENTED_EVIDENCE:
            return json.dumps({**json.loads(content), "evidence": ["a line that nobody wrote"]})
        case _:
            return content
