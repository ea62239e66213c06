"""A model for coding agents, in the three protocols they use: it follows a script, step by step.

The step of a conversation follows from its number of tool results, so that a repeated request gets the same answer. It
records the requests for tests.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

TOKENS_IN = 1000
TOKENS_OUT = 50
"""Token counts of every answer."""
_HANG_SECONDS = 600.0

_YIELD_MS = 30_000
"""Seconds after which Codex answers with the number of a session, which is then polled for its result."""
_POLL = "write_stdin"
_RUNNING = re.compile(r"running with session ID (\d+)")

_SHELLS: Mapping[str, Callable[[str], Mapping[str, object]]] = {
    "Bash": lambda command: {"command": command, "description": "a step of the script"},
    "exec_command": lambda command: {"cmd": command, "yield_time_ms": _YIELD_MS},
    "shell": lambda command: {"command": ["bash", "-c", command]},
    "shell_command": lambda command: {"command": command},
    "run_shell_command": lambda command: {"command": command, "description": "a step of the script"},
}
"""Each agent's name of the tool that runs a command, and its arguments."""


@dataclass(frozen=True)
class Refusal:
    """An answer that is none: its status, body and headers; status 0 never comes."""

    status: int
    body: Mapping[str, object] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Script:
    """Commands for the agent to run in sequence, then the final message."""

    commands: Sequence[str] = ()
    last: str = "done"
    refusals: list[Refusal] = field(default_factory=list)
    """The first answers, one per request."""
    always: Refusal | None = None
    """The answer to every request."""
    keys: list[str] = field(default_factory=list)
    """Keys that came with requests."""
    requests: list[Mapping[str, Any]] = field(default_factory=list)

    def next(self, results: int, tools: Sequence[str]) -> tuple[str, Mapping[str, object]] | None:
        """The call of a tool that comes after so many *results*; None for the last word."""
        shell = next((name for name in _SHELLS if name in tools), None)
        if shell is None or results >= len(self.commands):
            return None
        return shell, _SHELLS[shell](self.commands[results])


def app(script: Script) -> Starlette:
    """The endpoint of *script*."""
    model = _Model(script)
    return Starlette(
        routes=[
            Route("/v1/messages", model.anthropic, methods=["POST"]),
            Route("/v1/messages/count_tokens", model.count, methods=["POST"]),
            Route("/v1/responses", model.responses, methods=["POST"]),
            Route("/v1beta/models/{call:path}", model.gemini, methods=["POST"]),
        ]
    )


@dataclass
class _Model:
    script: Script

    async def anthropic(self, request: Request) -> Response:
        """https://docs.anthropic.com/en/api/messages-streaming."""
        asked = await self._asked(request, request.headers.get("x-api-key", ""))
        if isinstance(asked, Response):
            return asked
        contents = [message["content"] for message in asked["messages"] if isinstance(message["content"], list)]
        results = sum(part.get("type") == "tool_result" for content in contents for part in content)
        call = self.script.next(results, [str(tool.get("name")) for tool in asked.get("tools", ())])
        stop = "tool_use" if call else "end_turn"
        usage = {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT}
        message = {"id": f"msg_{results}", "type": "message", "role": "assistant", "model": asked["model"]}
        block: dict[str, Any] = {"type": "text", "text": self.script.last}
        if call:
            block = {"type": "tool_use", "id": f"toolu_{results}", "name": call[0], "input": call[1]}
        if not asked.get("stream"):
            return JSONResponse({**message, "content": [block], "stop_reason": stop, "usage": usage})
        delta = {"type": "text_delta", "text": self.script.last}
        if call:
            delta = {"type": "input_json_delta", "partial_json": json.dumps(call[1])}
        opened = {**block, "input": {}} if call else {**block, "text": ""}
        events: list[Mapping[str, Any]] = [
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": opened},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": stop}, "usage": usage},
            {"type": "message_stop"},
        ]
        return _stream(events)

    async def count(self, request: Request) -> Response:
        """A count that costs nothing."""
        await request.body()
        return JSONResponse({"input_tokens": TOKENS_IN})

    async def responses(self, request: Request) -> Response:
        """https://platform.openai.com/docs/api-reference/responses-streaming."""
        asked = await self._asked(request, request.headers.get("authorization", "").removeprefix("Bearer "))
        if isinstance(asked, Response):
            return asked
        given = asked["input"] if isinstance(asked["input"], list) else []
        outputs = [item for item in given if str(item.get("type", "")).endswith("_call_output")]
        results = len(outputs) - sum(item.get("name") == _POLL for item in given)
        call = self.script.next(results, [str(tool.get("name")) for tool in asked.get("tools", ())])
        if outputs and (running := _RUNNING.search(str(outputs[-1].get("output")))):
            call = _POLL, {"session_id": int(running[1]), "chars": "", "yield_time_ms": _YIELD_MS}
        item: dict[str, Any] = {"type": "message", "role": "assistant", "id": f"msg_{results}"}
        item["content"] = [{"type": "output_text", "text": self.script.last}]
        if call:
            number = len(outputs)
            item = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}", "name": call[0]}
            item["arguments"] = json.dumps(call[1])
        total = TOKENS_IN + TOKENS_OUT
        usage = {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT, "total_tokens": total}
        whole = {"id": f"resp_{results}", "object": "response"}
        events: list[Mapping[str, Any]] = [
            {"type": "response.created", "response": whole},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {**whole, "status": "completed", "usage": usage}},
        ]
        return _stream(events)

    async def gemini(self, request: Request) -> Response:
        """https://ai.google.dev/api/generate-content."""
        asked = await self._asked(request, request.headers.get("x-goog-api-key", ""))
        if isinstance(asked, Response):
            return asked
        parts = [part for content in asked.get("contents", ()) for part in content.get("parts", ())]
        results = sum("functionResponse" in part for part in parts)
        declared = [tool for group in asked.get("tools", ()) for tool in group.get("functionDeclarations", ())]
        call = self.script.next(results, [str(tool.get("name")) for tool in declared])
        part: dict[str, Any] = {"text": self.script.last}
        if call:
            part = {"functionCall": {"name": call[0], "args": call[1]}}
        total = TOKENS_IN + TOKENS_OUT
        usage = {"promptTokenCount": TOKENS_IN, "candidatesTokenCount": TOKENS_OUT, "totalTokenCount": total}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        answer = {"candidates": [candidate], "usageMetadata": usage}
        if "stream" not in request.path_params["call"]:
            return JSONResponse(answer)
        return Response(f"data: {json.dumps(answer)}\r\n\r\n", media_type="text/event-stream")

    async def _asked(self, request: Request, key: str) -> Any:
        """Return the request's JSON, or the response that replaces the script's."""
        script, asked = self.script, await request.json()
        script.keys.append(key)
        script.requests.append(asked)
        refusal = script.refusals.pop(0) if script.refusals else script.always
        if refusal is None:
            return asked
        if refusal.status == 0:
            await asyncio.sleep(_HANG_SECONDS)
        return JSONResponse(refusal.body, refusal.status or 503, dict(refusal.headers))


def _stream(events: Sequence[Mapping[str, Any]]) -> Response:
    lines = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Response(lines, media_type="text/event-stream")
