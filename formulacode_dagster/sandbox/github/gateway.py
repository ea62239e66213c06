"""What stands before every endpoint: authentication, limits, faults, headers, books."""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from . import answers
from .accounting import Accounting
from .answers import Answer, Elsewhere
from .budgets import Budgets
from .context import Account, Asked, Rate
from .failing import Broken, instead, spoil
from .faults import Fault, FaultSource, ScriptedFault
from .library import Library
from .limits import Limits, Resource

Handler = Callable[[Asked, "Incoming"], Answer]
MEDIA_TYPE = "github.v3"


@dataclass(frozen=True)
class Incoming:
    """The parts of a request that handlers read."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    accept: str
    url: str
    """Where it was sent, with the query."""
    body: Any = None


class Gateway:
    """Answers requests by handlers, as GitHub's edge would let them."""

    def __init__(
        self,
        library: Library,
        limits: Limits,
        faults: FaultSource,
        tokens: Mapping[str, Account] | None,
    ) -> None:
        self.library = library
        self.limits = limits
        self.faults = faults
        self.accounting = Accounting()
        self.budgets = Budgets(limits)
        self._tokens = tokens
        self._serial = itertools.count(1)

    def reset(self) -> None:
        """Books, budgets and chances as at the start."""
        self.accounting.reset()
        self.budgets.reset()
        self.faults.restart()

    async def answer(
        self, request: Request, names: tuple[str, ...], resource: Resource, incoming: Incoming, call: Call
    ) -> Response:
        """Let *call* answer, if nothing stands against it. *names* are those of the accounting."""
        counts = self.accounting.begin(names)
        status = size = 0
        try:
            response = await self._answer(request, counts, resource, incoming, call)
            status, size = response.status_code, len(bytes(response.body))
            return response
        finally:
            self.accounting.end(status, size)

    async def _answer(
        self, request: Request, counts: Mapping[str, int], resource: Resource, incoming: Incoming, call: Call
    ) -> Response:
        account, valid = self._account(request)
        login = account.login if account else None
        user = f"user ID {account.id}" if account else "127.0.0.1"
        graphql = resource is Resource.GRAPHQL
        fault = self.faults.next(counts)
        if fault is not None:
            self.accounting.faults[fault.fault or str(fault.answer_status)] += 1
            answer = await instead(
                fault,
                self.faults.faults,
                request,
                graphql=graphql,
                retry_after=self.budgets.retry_after(login),
                user=user,
            )
            if answer is not None:
                used_up = fault.fault is Fault.PRIMARY_LIMIT
                return self._finish(
                    request, answer, self.budgets.rate(login, resource), account, resource, used_up=used_up
                )
        refused = self._refused(account, valid, resource, user, free=call.free)
        if refused is not None:
            return self._finish(request, refused, self.budgets.rate(login, resource), account, resource)
        url = str(request.base_url).rstrip("/")
        asked = Asked(self.library, self.limits, account, url, lambda: self.budgets.rates(login))
        answer = await call(asked, incoming, self)
        answer = spoil(answer, fault.fault if fault else None, graphql=graphql)
        response = self._finish(
            request, answer, self.budgets.rate(login, resource), account, resource, charge=not graphql
        )
        return self._broken(response, answer, fault)

    def _account(self, request: Request) -> tuple[Account | None, bool]:
        """Who asks, and whether the token is a known one."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if not scheme:
            return None, True
        if scheme.lower() not in ("bearer", "token") or not token.strip():
            return None, False
        token = token.strip()
        if self._tokens is None:
            return Account(login=f"user-{hashlib.sha256(token.encode()).hexdigest()[:8]}"), True
        account = self._tokens.get(token)
        return account, account is not None

    def _refused(
        self, account: Account | None, valid: bool, resource: Resource, user: str, *, free: bool
    ) -> Answer | None:
        if not valid:
            return answers.bad_credentials()
        if account is None and resource in (Resource.GRAPHQL, Resource.CODE_SEARCH):
            return answers.authentication_required()
        if free:
            return None
        login = account.login if account else None
        reason = self.budgets.refused(login, resource, self.accounting.under_way)
        if reason is not None:
            self.accounting.limit_hits[reason] += 1
            return answers.secondary_limit(self.budgets.retry_after(login))
        if self.budgets.exhausted(login, resource):
            self.accounting.limit_hits[f"primary {resource}"] += 1
            graphql = resource is Resource.GRAPHQL
            return answers.primary_limit_graphql(user) if graphql else answers.primary_limit(user)
        return None

    def _finish(
        self,
        request: Request,
        answer: Answer,
        rate: Rate,
        account: Account | None,
        resource: Resource,
        *,
        charge: bool = False,
        used_up: bool = False,
    ) -> Response:
        headers = dict(answer.headers)
        body, status = answer.body, answer.status
        if status == 200 and resource is not Resource.GRAPHQL:
            headers["etag"] = f'W/"{hashlib.sha256(body).hexdigest()}"'
            if headers["etag"] in [tag.strip() for tag in request.headers.get("if-none-match", "").split(", ")]:
                status, body = 304, b""
                self.accounting.not_modified += 1
        if charge and status != 304 and not answer.free:
            rate = self.budgets.charge(account.login if account else None, resource)
            self.accounting.points[resource] += 1
        headers |= {
            "date": formatdate(time.time(), usegmt=True),
            "x-github-request-id": f"SAND:{next(self._serial):06X}",
            "x-github-media-type": f"{MEDIA_TYPE}; format=json",
        }
        if status != 502 and status != 401:
            headers |= {
                "x-ratelimit-limit": str(rate.limit),
                "x-ratelimit-remaining": "0" if used_up else str(rate.remaining),
                "x-ratelimit-used": str(rate.used),
                "x-ratelimit-reset": str(rate.reset),
                "x-ratelimit-resource": str(resource),
            }
        if account is not None:
            headers |= {"x-oauth-scopes": ", ".join(account.scopes), "x-accepted-oauth-scopes": ""}
        return Response(body, status, headers, answer.media_type)

    @staticmethod
    def _broken(response: Response, answer: Answer, fault: ScriptedFault | None) -> Response:
        if fault is None or fault.fault not in (Fault.DROPPED, Fault.RESET):
            return response
        body = bytes(response.body)
        kept = body[: len(body) // 2] if fault.fault is Fault.DROPPED else b""
        headers = {
            name: value for name, value in response.headers.items() if name not in ("content-length", "content-type")
        }
        return Broken(Answer(answer.status, body, answer.media_type, headers), kept, len(body) + 1)


class Call:
    """A REST call: its handler runs in a thread, and pays one point when it is done."""

    free = False

    def __init__(self, handler: Handler, *, free: bool = False) -> None:
        self._handler = handler
        self.free = free

    async def __call__(self, asked: Asked, incoming: Incoming, gateway: Gateway) -> Answer:  # noqa: ARG002 - a GraphQL call needs it
        """The answer."""
        try:
            answer = await run_in_threadpool(self._handler, asked, incoming)
        except Elsewhere as elsewhere:
            return elsewhere.answer
        return Answer(answer.status, answer.body, answer.media_type, answer.headers, free=True) if self.free else answer


async def read_body(request: Request) -> bytes:
    """The request's body; empty when the client went away."""
    try:
        return await request.body()
    except ClientDisconnect:
        return b""
