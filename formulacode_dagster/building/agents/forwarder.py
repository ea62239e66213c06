"""Hands an agent's requests on to the endpoint of its model, with the real key for the dummy, and keeps accounts.

It listens at a unix socket of the host. It forwards only requests for answers, by tools that the agent runs itself; it
ends the run when the budget is used up, or when the endpoint reports that retries are useless.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingMixIn, UnixStreamServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from formulacode_dagster.models.items import Cost

from .bridge import MODEL_SOCKET
from .limits import RunEnd, ended_by_answer
from .protocol import AgentBudget, AgentOutcome
from .wire import (
    KEY_HEADERS,
    Tokens,
    Wire,
    beyond_the_agent,
    is_allowed,
    is_answer,
    most_tokens,
    read_request,
    tokens_of,
)

if TYPE_CHECKING:
    import httpx

LONGEST_REQUEST = 32 << 20
LONGEST_ANSWER = 32 << 20
IDLE_SECONDS = 120.0
"""Without a byte of an answer."""
MOST_FAILURES = 3
"""Consecutive failures after which the endpoint counts as down."""
MOST_AT_ONCE = 8
_HANDED_ON = frozenset({"accept", "anthropic-version", "anthropic-beta", "openai-beta", "user-agent"})


@dataclass(frozen=True)
class UpstreamEndpoint:
    """Endpoint of the models, and prices of its answers."""

    wire: Wire
    url: str
    key: str = field(repr=False)
    dollars_per_million_in: float = 0.0
    dollars_per_million_out: float = 0.0


class Account:
    """Usage of a run, and how the run was ended early, if it was."""

    def __init__(self, endpoint: UpstreamEndpoint, budget: AgentBudget, cut: Callable[[], None]) -> None:
        """*cut* ends the agent, from any thread; it is called once."""
        self._endpoint = endpoint
        self._budget = budget
        self._cut = cut
        self._lock = threading.Condition()
        self._failures = 0
        self._awaited = 0
        self._reserved = Tokens()
        self.cost = Cost()
        self.ended: RunEnd | None = None

    def begin(self, estimate: Tokens) -> bool:
        """Return True if one more request is allowed, and reserve its *estimate*; otherwise end the run.

        Waits while other answers are awaited and might leave too little for this one.
        """
        with self._lock:
            self._lock.wait_for(lambda: self.ended is not None or not self._awaited or self._fits(estimate))
            if self.ended is None and self.cost.model_calls >= self._budget.turns:
                self._end(RunEnd(AgentOutcome.BUDGET, f"{self._budget.turns} answers were asked for"))
            if self.ended is None and not self._is_left:
                self._end(RunEnd(AgentOutcome.BUDGET, self._budget_detail))
            if self.ended is not None:
                return False
            self.cost += Cost(model_calls=1)
            self._awaited += 1
            self._reserved += estimate
            return True

    def release(self, estimate: Tokens) -> None:
        """Give back what `begin` reserved, once the request is answered or has failed."""
        with self._lock:
            self._awaited -= 1
            self._reserved -= estimate
            self._lock.notify_all()

    def spend(self, answer: bytes) -> None:
        """Count the usage of *answer*, and end the run when the budget is used up."""
        took = tokens_of(self._endpoint.wire, answer)
        with self._lock:
            self._failures = 0
            self.cost += Cost(tokens_in=took.given, tokens_out=took.made, dollars=self._dollars(took))
            if not self._is_left:
                self._end(RunEnd(AgentOutcome.BUDGET, self._budget_detail))

    def fail(self, status: int, headers: dict[str, str], answer: str) -> None:
        """Cut the run after an answer of *status* that no further request will better; 0 for none at all."""
        ended = ended_by_answer(status, headers, answer, now=datetime.now(tz=UTC))
        with self._lock:
            self._failures += 1
            if ended is not None and (ended.outcome is not AgentOutcome.OVERLOADED or self._failures >= MOST_FAILURES):
                self._end(ended)

    def _dollars(self, tokens: Tokens) -> float:
        prices = self._endpoint
        return (tokens.given * prices.dollars_per_million_in + tokens.made * prices.dollars_per_million_out) / 1e6

    def _fits(self, estimate: Tokens) -> bool:
        """Return True if the budget is enough for *estimate* besides all that is reserved."""
        more = self._reserved + estimate
        tokens = self.cost.tokens_in + self.cost.tokens_out + more.given + more.made
        return tokens <= self._budget.tokens and self.cost.dollars + self._dollars(more) <= self._budget.dollars

    @property
    def _is_left(self) -> bool:
        tokens = self.cost.tokens_in + self.cost.tokens_out
        has_price = self._endpoint.dollars_per_million_in or self._endpoint.dollars_per_million_out
        return tokens < self._budget.tokens and (not has_price or self.cost.dollars < self._budget.dollars)

    @property
    def _budget_detail(self) -> str:
        cost = self.cost
        return f"{cost.tokens_in} tokens in, {cost.tokens_out} out, {cost.dollars:.2f} dollars are used up"

    def _end(self, ended: RunEnd) -> None:
        if self.ended is None:
            self.ended = ended
            self._lock.notify_all()
            # from another thread, since ending the run ends the caller of this one
            threading.Thread(target=self._cut, daemon=True, name="agent-cut").start()


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, path: Path, account: Account, endpoint: UpstreamEndpoint, client: httpx.Client) -> None:
        super().__init__(str(path), _Handler)
        self.account = account
        self.endpoint = endpoint
        self.client = client
        self.slots = threading.BoundedSemaphore(MOST_AT_ONCE)

    def verify_request(self, request: object, client_address: object) -> bool:  # noqa: ARG002 - those of socketserver
        return self.slots.acquire(blocking=False)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.slots.release()

    def handle_error(self, request: object, client_address: object) -> None:
        """A caller that is gone, as an agent that was ended leaves its calls."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = 30.0

    def do_POST(self) -> None:
        wire, account = self.server.endpoint.wire, self.server.account
        path = urlsplit(self.path).path
        length = self.headers.get("content-length", "")
        if not length.isdigit() or int(length) > LONGEST_REQUEST:
            return self._refuse(413, "a request has a length, and not more than 32 MB")
        # read before refusing: closing a connection with unread data resets it, and the refusal is lost
        request = self.rfile.read(int(length))
        if not is_allowed(wire, path):
            return self._refuse(404, f"{path} is not handed on")
        try:
            asked = read_request(request)
        except ValueError:
            return self._refuse(400, "a request is a JSON object")
        if beyond := beyond_the_agent(wire, asked):
            return self._refuse(
                400, f"{', '.join(beyond)}: an endpoint only answers, and the agent's tools are its own"
            )
        # an object with a name twice may be read in another way than here
        request = json.dumps(asked).encode()
        if not is_answer(wire, path):
            return self._hand_on(request, counts=False)
        estimate = most_tokens(wire, asked, len(request))
        if not account.begin(estimate):
            return self._refuse(403, "the budget of this run is used up")
        try:
            return self._hand_on(request, counts=True)
        finally:
            account.release(estimate)

    def do_HEAD(self) -> None:
        """Requests by which agents probe the endpoint."""
        self._head(200, "text/plain")

    def do_GET(self) -> None:
        self._refuse(404, "only answers are handed on")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the account is kept, and a transcript."""

    def _hand_on(self, request: bytes, *, counts: bool) -> None:
        import httpx

        endpoint, account = self.server.endpoint, self.server.account
        name, form = KEY_HEADERS[endpoint.wire]
        headers = {key: value for key, value in self.headers.items() if key.lower() in _HANDED_ON}
        headers |= {name: form.format(endpoint.key), "content-type": "application/json"}
        parts = urlsplit(self.path)
        # a key may also be given in the query
        query = urlencode([(key, value) for key, value in parse_qsl(parts.query) if key != "key"])
        url = f"{endpoint.url.rstrip('/')}{parts.path}{'?' + query if query else ''}"
        try:
            with self.server.client.stream("POST", url, content=request, headers=headers) as answer:
                kept = self._copy(answer)
        except httpx.TimeoutException:
            account.fail(0, {}, "no answer in time")
            return self._refuse(504, "the endpoint does not answer")
        except httpx.HTTPError as error:
            account.fail(0, {}, type(error).__name__)
            return self._refuse(502, "the endpoint cannot be reached")
        if answer.is_error:
            account.fail(answer.status_code, dict(answer.headers), kept.decode(errors="replace")[:4000])
        elif counts:
            account.spend(kept)
        return None

    def _copy(self, answer: httpx.Response) -> bytes:
        """Hand the answer on as it comes; all of it."""
        self._head(answer.status_code, answer.headers.get("content-type", "application/json"))
        kept = bytearray()
        for chunk in answer.iter_bytes():
            kept += chunk[: LONGEST_ANSWER - len(kept)]
            # its cost is counted even though its caller is gone
            with suppress(OSError):
                self.wfile.write(chunk)
                self.wfile.flush()
        return bytes(kept)

    def _refuse(self, status: int, why: str) -> None:
        with suppress(OSError):
            self._head(status, "application/json")
            self.wfile.write(b'{"error": {"type": "forwarder", "message": "%s"}}' % why.replace('"', "'").encode())

    def _head(self, status: int, kind: str) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("connection", "close")
        self.end_headers()


@contextmanager
def forwarding(folder: Path, endpoint: UpstreamEndpoint, account: Account) -> Iterator[None]:
    """Listen in *folder* for the length of a `with` block."""
    import httpx

    path = folder / MODEL_SOCKET
    with httpx.Client(timeout=httpx.Timeout(IDLE_SECONDS, connect=20.0)) as client:
        server = _Server(path, account, endpoint, client)
        path.chmod(0o666)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True, name="agent-forwarder")
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            server.server_close()
            thread.join()
