"""Middleware of every endpoint: authentication, limits, faults, headers, books."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from email.utils import formatdate
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from . import answers
from .accounting import Accounting
from .answers import Answer, EarlyAnswer
from .budgets import Budgets
from .context import Account, RequestContext
from .failing import Broken, instead, spoil
from .faults import Fault, FaultSource, ScriptedFault
from .limits import Limits, Resource
from .served_folder import ServedFolder

Handler = Callable[[RequestContext, "Incoming"], Answer]
Call = Callable[[RequestContext, "Incoming"], Awaitable[Answer]]
MEDIA_TYPE = "github.v3"


@dataclass(frozen=True)
class Incoming:
    """The parts of a request that handlers read."""

    path: Mapping[str, str]
    query: Mapping[str, str]
    accept: str
    url: str
    """Path of the request, with the query."""
    body: Any = None


@dataclass(frozen=True)
class Visit:
    """A request, and its sender; `valid` is false for an unknown token, `free` for a call without cost."""

    request: Request
    resource: Resource
    account: Account | None
    valid: bool
    free: bool

    @property
    def login(self) -> str | None:
        """Whose budgets it uses."""
        return self.account.login if self.account else None

    @property
    def user(self) -> str:
        """The caller in GitHub's words."""
        return f"user ID {self.account.id}" if self.account else "127.0.0.1"

    @property
    def graphql(self) -> bool:
        """True for GraphQL, which fails in another form."""
        return self.resource is Resource.GRAPHQL


class Gateway:
    """Answers requests by handlers, as GitHub's edge would let them."""

    def __init__(
        self,
        folder: ServedFolder,
        limits: Limits,
        faults: FaultSource,
        tokens: Mapping[str, Account] | None,
    ) -> None:
        self.folder = folder
        self.limits = limits
        self.faults = faults
        self.accounting = Accounting()
        self._ahead = 0.0
        self.budgets = Budgets(limits, self.now)
        self._tokens = tokens
        self._serial = itertools.count(1)

    def reset(self) -> None:
        """Books, budgets and chances as at the start."""
        self.accounting.reset()
        self.budgets.reset()
        self.faults.restart()

    def now(self) -> float:
        """Seconds since 1970 by this GitHub's clock."""
        return time.time() + self._ahead

    def put_forward(self, seconds: float) -> None:
        """Advance the clock by *seconds*, so that clients need not wait."""
        self._ahead += max(0.0, seconds)

    async def answer(
        self,
        request: Request,
        names: tuple[str, ...],
        resource: Resource,
        incoming: Incoming,
        call: Call,
        *,
        free: bool = False,
    ) -> Response:
        """Let *call* respond, if nothing prevents it. *names* are those of the accounting.

        A REST call that is answered pays one point unless it is *free*; a GraphQL call pays its price itself.
        """
        counts = self.accounting.begin(names)
        account, valid = self._account(request)
        visit = Visit(request, resource, account, valid, free)
        self.budgets.enter(visit.login)
        status = size = 0
        try:
            response = await self._answer(visit, counts, incoming, call)
            status, size = response.status_code, len(bytes(response.body))
            return response
        finally:
            self.budgets.leave(visit.login)
            self.accounting.end(status, size)

    async def _answer(self, visit: Visit, counts: Mapping[str, int], incoming: Incoming, call: Call) -> Response:
        # Limits are met on arrival: a slow answer must not let a burst pass, or be refused, late.
        refused = self._refused(visit)
        fault = self.faults.next(counts)
        if refused is not None:
            return self._finish(visit, refused)
        if fault is not None:
            self.accounting.faults[fault.fault or str(fault.answer_status)] += 1
            answer = await instead(
                fault,
                self.faults.faults,
                visit.request,
                graphql=visit.graphql,
                retry_after=self.budgets.retry_after(visit.login),
                user=visit.user,
            )
            if answer is not None:
                return self._finish(visit, answer, used_up=fault.fault is Fault.PRIMARY_LIMIT)
        url = str(visit.request.base_url).rstrip("/")
        asked = RequestContext(
            self.folder,
            self.limits,
            visit.account,
            url,
            lambda: self.budgets.rates(visit.login),
            fault.failure if fault else None,
        )
        work = self.faults.faults.work_seconds
        self.budgets.work(visit.login, visit.resource, work)
        if wait := work + self.faults.faults.latency_seconds:
            await asyncio.sleep(wait)
        answer = spoil(await call(asked, incoming), fault.fault if fault else None, graphql=visit.graphql)
        return self._broken(self._finish(visit, answer, charge=not (visit.graphql or visit.free)), answer, fault)

    def _account(self, request: Request) -> tuple[Account | None, bool]:
        """Return the caller, and whether the token is a known one."""
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

    def _refused(self, visit: Visit) -> Answer | None:
        if not visit.valid:
            return answers.bad_credentials()
        if visit.account is None and visit.resource in (Resource.GRAPHQL, Resource.CODE_SEARCH):
            return answers.authentication_required()
        if visit.account is not None and visit.resource in visit.account.refused and not visit.free:
            return answers.forbidden(graphql=visit.graphql)
        if visit.free:
            return None
        reason = self.budgets.refused(visit.login, visit.resource)
        if reason is not None:
            self.accounting.limit_hits[reason] += 1
            return answers.secondary_limit(self.budgets.retry_after(visit.login))
        if self.budgets.exhausted(visit.login, visit.resource):
            self.accounting.limit_hits[f"primary {visit.resource}"] += 1
            return answers.primary_limit(visit.user, graphql=visit.graphql)
        return None

    def _finish(self, visit: Visit, answer: Answer, *, charge: bool = False, used_up: bool = False) -> Response:
        """The response: limits and identity in its headers, and the point it costs paid."""
        headers = dict(answer.headers)
        body, status = answer.body, answer.status
        if charge:
            self.budgets.charge(visit.login, visit.resource)
            self.accounting.points[visit.resource] += 1
        headers |= {
            "date": formatdate(self.now(), usegmt=True),
            "x-github-request-id": f"SAND:{next(self._serial):06X}",
            "x-github-media-type": f"{MEDIA_TYPE}; format=json",
        }
        if status not in (401, 502):
            rate = self.budgets.rate(visit.login, visit.resource)
            headers |= {
                "x-ratelimit-limit": str(rate.limit),
                "x-ratelimit-remaining": "0" if used_up else str(rate.remaining),
                "x-ratelimit-used": str(rate.used),
                "x-ratelimit-reset": str(rate.reset),
                "x-ratelimit-resource": str(visit.resource),
            }
        if visit.account is not None and visit.account.scopes is not None:
            headers |= {"x-oauth-scopes": ", ".join(visit.account.scopes), "x-accepted-oauth-scopes": ""}
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


def rest_call(handler: Handler) -> Call:
    """The call of a REST endpoint: *handler* runs in a thread."""

    async def call(asked: RequestContext, incoming: Incoming) -> Answer:
        try:
            return await run_in_threadpool(handler, asked, incoming)
        except EarlyAnswer as elsewhere:
            return elsewhere.answer

    return call


async def read_body(request: Request) -> bytes:
    """The request's body; empty when the client went away."""
    try:
        return await request.body()
    except ClientDisconnect:
        return b""
