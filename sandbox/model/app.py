"""The HTTP side of the sandbox model: `/v1/chat/completions`, `/v1/models`, and `/_sandbox/calls` for the books."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Set
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from formulacode_dagster.selection.classification.probing import Probe

from .faults import Fault, ModelFaults
from .rules import judge, judge_hack, write_benchmark


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


MODEL = "sandbox-rules"
"""The only model; another name gives 404, as with a real endpoint."""

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


def app(faults: ModelFaults | None = None, *, api_key: str | None = None, server: Server | None = None) -> Starlette:
    """An OpenAI-compatible endpoint that answers by `rules`, in the manner of *server*.

    *faults* says which calls go wrong. With *api_key*, another key is answered with 401; without, any key will do.
    """
    endpoint = _Endpoint(faults or ModelFaults(), api_key, server or Server())
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
    server: Server
    probed: int = 0
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
                "probes": self.probed,
                "faults": dict(self.failed),
                "tokens_in": self.tokens_in,
                "tokens_out": self.tokens_out,
            }
        )

    async def complete(self, request: Request) -> JSONResponse:
        if refusal := self._unauthorized(request):
            return refusal
        try:
            question = await request.json()
            messages = [
                {"role": str(message["role"]), "content": _text_of(message["content"])}
                for message in question["messages"]
            ]
        except (ValueError, KeyError, TypeError) as error:
            self.called += 1
            return _error(400, f"the request is malformed: {error!r}", "invalid_request_error")
        asked = _fields(question, messages)
        if asked == Probe.model_fields.keys():
            self.probed += 1
            return self._probed(question, messages)
        self.called += 1
        call, fault = self.called, self.faults.of(self.called)
        if fault is not None:
            self.failed[fault.value] += 1
            if failure := await self._fail(request, fault):
                return failure
        if refusal := self._refused(question):
            return refusal
        if "is_performance" in asked:
            content = judge(*_material(messages)).model_dump_json()
        elif "is_hack" in asked:
            content = judge_hack(messages[-1]["content"])
        elif "code" in asked:
            content = write_benchmark(messages[-1]["content"])
        else:
            words = (
                "the sandbox classifies pull requests, writes benchmarks and judges hacks; it does not know this schema"
            )
            return _error(400, words, "unsupported_value")
        return self._answer(call, question, content, messages, fault)

    def _probed(self, question: dict[str, Any], messages: list[dict[str, str]]) -> JSONResponse:
        """A probe asks how this server is, not how it fails: faults are of other questions."""
        answer = Probe(total=4, word="yes").model_dump_json()
        return self._refused(question) or self._answer(0, question, answer, messages, None)

    def _refused(self, question: dict[str, Any]) -> JSONResponse | None:
        if question.get("model") != MODEL:
            return _error(404, f"The model `{question.get('model')}` does not exist", "model_not_found")
        if question.get("stream"):
            return _error(400, "the sandbox does not stream", "unsupported_value")
        complaint = self.server.complaint(question)
        return None if complaint is None else _error(*complaint)

    def _answer(
        self,
        call: int,
        question: dict[str, Any],
        content: str,
        messages: list[dict[str, str]],
        fault: Fault | None,
    ) -> JSONResponse:
        tokens_in = sum(len(message["content"]) for message in messages) // _CHARACTERS_PER_TOKEN
        answer = _spoilt(content, fault)
        message = {"role": "assistant", "refusal": None, **self.server.message(question, answer)}
        if fault is Fault.REFUSAL:
            message |= {"content": None, "refusal": "sandbox fault: I would rather not say."}
        tokens_out = len(message["refusal"] or answer) // _CHARACTERS_PER_TOKEN
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


def _fields(question: dict[str, Any], messages: list[dict[str, str]]) -> Set[str]:
    """Rules for the answer's schema in the request or in a prompt; else those of a classification."""
    form = question.get("response_format") or {}
    schema = form["json_schema"].get("schema", {}) if form.get("type") == "json_schema" else None
    for tool in question.get("tools") or ():
        schema = tool["function"]["parameters"]
    for message in messages[:1] if schema is None and messages[0]["role"] == "system" else ():
        last = message["content"].rpartition("\n")[2]
        schema = json.loads(last) if last.startswith("{") else None
    return schema.get("properties", {}).keys() if schema is not None else {"is_performance"}


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
        case Fault.OPPOSITE:
            answer = json.loads(content)
            return json.dumps({**answer, "is_performance": not answer["is_performance"]})
        case Fault.EMPTY:
            return ""
        case Fault.INVENTED_EVIDENCE:
            return json.dumps({**json.loads(content), "evidence": ["a line that nobody wrote"]})
        case _:
            return content
