"""How each fault appears on the wire."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from . import answers
from .answers import Answer
from .faults import WENT_WRONG, Fault, Faults, ScriptedFault

_POLL_SECONDS = 0.05
_HALVING = (Fault.HALF_PAGE, Fault.NULL_NODE, Fault.FIELD)


class Broken(Response):
    """An answer that ends early: the connection is closed after *body*, although *promised* bytes were announced."""

    def __init__(self, answer: Answer, body: bytes, promised: int) -> None:
        super().__init__(body, answer.status, dict(answer.headers), answer.media_type)
        self.headers["content-length"] = str(promised)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI
        """Send the head and a part; the server closes incomplete responses."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})


async def instead(
    scripted: ScriptedFault, faults: Faults, request: Request, *, graphql: bool, retry_after: int | None, user: str
) -> Answer | None:
    """Return the response that replaces the right one; None if the right one is still needed."""
    if scripted.answer_status is not None:
        headers = dict(scripted.answer_headers)
        media_type = headers.pop("content-type", answers.JSON)
        return Answer(scripted.answer_status, scripted.answer_body.encode(), media_type, headers)
    match scripted.fault:
        case Fault.BAD_GATEWAY:
            return answers.bad_gateway()
        case Fault.UNAVAILABLE:
            return answers.refusal(503, "Service unavailable")
        case Fault.PRIMARY_LIMIT:
            return answers.primary_limit(user, graphql=graphql)
        case Fault.SECONDARY_LIMIT:
            return answers.secondary_limit(retry_after)
        case Fault.UNAUTHORIZED:
            return answers.bad_credentials()
        case Fault.GONE if graphql:
            error = {"type": "NOT_FOUND", "path": [], "message": "Could not resolve to a node."}
            return answers.ok({"data": None, "errors": [error]})
        case Fault.GONE:
            return answers.not_found()
        case Fault.TIMED_OUT if graphql:
            message = "Something went wrong while executing your query. This may be the result of a timeout."
            return answers.ok({"data": None, "errors": [{"message": message}]})
        case Fault.TIMED_OUT:
            return answers.refusal(504, "We couldn't respond to your request in time.")
        case Fault.SLOW:
            await _wait(request, faults.slow_seconds)
        case Fault.HANG:
            await _wait(request, faults.hang_seconds)
            return answers.refusal(504, "Nobody waited for this.")
    return None


def spoil(answer: Answer, fault: Fault | None, *, graphql: bool) -> Answer:
    """Return the right *answer*, its content corrupted if *fault* says so."""
    if fault is Fault.TRUNCATED:
        return Answer(answer.status, answer.body[: len(answer.body) // 2], answer.media_type, answer.headers)
    spoils = (Fault.HALF_PAGE, Fault.NULL_NODE) if graphql else (*_HALVING, Fault.INCOMPLETE)
    if fault in spoils and answer.status == 200 and answer.media_type == answers.JSON:
        data = answer.data()
        spoilt = _spoilt_graphql(data, fault) if graphql else _spoilt_rest(data, fault)
        return Answer(answer.status, answers.encode(spoilt), answer.media_type, answer.headers)
    return answer


def _spoilt_rest(data: Any, fault: Fault | None) -> Any:
    if isinstance(data, dict) and isinstance(data.get("items"), list):
        shown = data | {"items": data["items"][: len(data["items"]) // 2]}
        return shown | {"incomplete_results": True} if fault is Fault.INCOMPLETE else shown
    return data[: len(data) // 2] if isinstance(data, list) and fault is not Fault.INCOMPLETE else data


def _spoilt_graphql(data: Any, fault: Fault | None) -> Any:
    found = _first_page(data.get("data"), [])
    if found is None:
        return data
    page, path = found
    nodes = page["nodes"]
    if fault is Fault.HALF_PAGE:
        page["nodes"] = nodes[: len(nodes) // 2]
        if "pageInfo" in page:
            page["pageInfo"] |= {"hasNextPage": False}
        return data
    nodes[0] = None
    data.setdefault("errors", []).append({"path": [*path, "nodes", 0], "message": WENT_WRONG})
    return data


def _first_page(value: Any, path: list[str | int]) -> tuple[dict[str, Any], list[str | int]] | None:
    """Return the outermost object with a non-empty list `nodes`."""
    if not isinstance(value, dict):
        return None
    if isinstance(value.get("nodes"), list) and value["nodes"]:
        return value, path
    for name, inner in value.items():
        found = _first_page(inner, [*path, name])
        if found is not None:
            return found
    return None


async def _wait(request: Request, seconds: float) -> None:
    for _ in range(max(1, int(seconds / _POLL_SECONDS))):
        # A handler that outlives its client would keep the server from stopping.
        if await request.is_disconnected():
            return
        await asyncio.sleep(_POLL_SECONDS)
