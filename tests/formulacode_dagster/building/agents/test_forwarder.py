"""The forwarder over its socket, and a model behind it: what it hands on, what it counts, when it ends a run."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from formulacode_dagster.building.agents.bridge import MODEL_SOCKET
from formulacode_dagster.building.agents.forwarder import MOST_FAILURES, Account, UpstreamEndpoint, forwarding
from formulacode_dagster.building.agents.protocol import AgentBudget, AgentOutcome
from formulacode_dagster.building.agents.wire import Tokens, Wire
from formulacode_dagster.models.items import Cost
from sandbox.server import serving
from tests.support.scripted_model import TOKENS_IN, TOKENS_OUT, Refusal, Script, app

KEY = "sk-the-real-one"
ANSWER = TOKENS_IN + TOKENS_OUT
PATIENCE = 30.0


class Run:
    """An agent's side of the forwarder, and what the host sees of it."""

    def __init__(self, folder: Path, account: Account, cut: threading.Event) -> None:
        self.account = account
        self.cut = cut
        self._client = httpx.Client(
            transport=httpx.HTTPTransport(uds=str(folder / MODEL_SOCKET)), base_url="http://model"
        )

    def send(self, content: bytes) -> httpx.Response:
        """Ask for one answer in these words."""
        return self._client.post("/v1/messages", content=content)

    def ask(self, path: str = "/v1/messages", **more: object) -> httpx.Response:
        """Ask for one answer, as Claude Code does."""
        asked = {"model": "m", "messages": [], "tools": [{"name": "Bash"}], **more}
        return self._client.post(path, json=asked, headers={"x-api-key": "dummy", "cookie": "a=b"})

    @property
    def outcome(self) -> AgentOutcome | None:
        """How the run was ended from outside, if it was."""
        if self.account.ended is None:
            assert not self.cut.is_set()
            return None
        assert self.cut.wait(PATIENCE)
        return self.account.ended.outcome


MakeRun = Callable[..., Run]


@pytest.fixture
def make_run(tmp_path: Path) -> Iterator[MakeRun]:
    """`make_run(script, budget=…)`: a forwarder before the model of *script*."""
    with ExitStack() as stack:

        def make(script: Script, *, url: str = "", price: float = 0.0, **budget: float) -> Run:
            served = url or stack.enter_context(serving(app(script)))
            endpoint = UpstreamEndpoint(Wire.ANTHROPIC, served, KEY, price, price)
            cut = threading.Event()
            account = Account(endpoint, AgentBudget.model_validate(budget), cut.set)
            stack.enter_context(forwarding(tmp_path, endpoint, account))
            return Run(tmp_path, account, cut)

        yield make


def test_an_answer_is_handed_on_with_the_real_key_and_counted(make_run: MakeRun) -> None:
    script = Script(["ls"])
    run = make_run(script, price=1000.0)
    answer = run.ask().json()
    assert answer["content"][0]["input"]["command"] == "ls"
    assert script.keys == [KEY]
    cost = Cost(model_calls=1, tokens_in=TOKENS_IN, tokens_out=TOKENS_OUT, dollars=ANSWER * 1000 / 1e6)
    assert (run.account.cost, run.outcome) == (cost, None)


@pytest.mark.parametrize(
    ("budget", "answers"),
    [({"tokens": ANSWER}, 1), ({"tokens": ANSWER + 1}, 2), ({"turns": 1}, 1), ({"dollars": 1.5}, 2)],
)
def test_a_run_is_ended_when_its_budget_is_used_up(make_run: MakeRun, budget: dict[str, float], answers: int) -> None:
    script = Script(["ls"])
    run = make_run(script, price=1e6 / ANSWER, **budget)
    for _ in range(answers):
        assert run.ask().status_code == 200
    assert run.ask().status_code == 403
    assert run.outcome is AgentOutcome.BUDGET
    assert len(script.requests) == answers


@pytest.mark.parametrize("path", ["/v1/messages/batches", "/v1/files", "/v1/organizations/api_keys"])
def test_nothing_else_is_handed_on(make_run: MakeRun, path: str) -> None:
    script = Script()
    run = make_run(script)
    assert run.ask(path).status_code == 404
    assert (script.requests, run.account.cost) == ([], Cost())


def test_tools_that_the_endpoint_would_run_are_refused(make_run: MakeRun) -> None:
    script = Script()
    answer = make_run(script).ask(tools=[{"type": "web_search_20250305", "name": "web_search"}])
    assert (answer.status_code, script.requests) == (400, [])
    assert "web_search_20250305" in answer.text


def test_an_address_that_the_endpoint_would_fetch_is_refused(make_run: MakeRun) -> None:
    script = Script()
    block = {"type": "document", "source": {"type": "url", "url": "https://x/?q=secret"}}
    answer = make_run(script).ask(messages=[{"role": "user", "content": [block]}])
    assert (answer.status_code, script.requests) == (400, [])


def test_what_is_handed_on_is_what_was_read(make_run: MakeRun) -> None:
    script = Script(["ls"])
    twice = b'{"model": "m", "messages": [], "tools": [{"type": "web_search_20250305"}], "tools": [{"name": "Bash"}]}'
    assert make_run(script).send(twice).status_code == 200
    assert script.requests[0]["tools"] == [{"name": "Bash"}]


@pytest.mark.parametrize("budget", [{"tokens": 1000}, {"dollars": 1.0}])
def test_requests_at_once_do_not_pass_the_budget_together(budget: dict[str, float]) -> None:
    endpoint = UpstreamEndpoint(Wire.ANTHROPIC, "", "", 1000.0, 1000.0)
    account = Account(endpoint, AgentBudget.model_validate(budget), lambda: None)
    estimate = Tokens(100, 300)
    assert account.begin(estimate)
    assert account.begin(estimate)
    allowed: list[bool] = []
    third = threading.Thread(target=lambda: allowed.append(account.begin(estimate)))
    third.start()
    third.join(0.1)
    assert (third.is_alive(), account.cost.model_calls) == (True, 2)
    account.spend(b'{"usage": {"input_tokens": 1, "output_tokens": 2}}')
    account.release(estimate)
    third.join(PATIENCE)
    assert (allowed, account.cost.model_calls, account.ended) == ([True], 3, None)


def test_a_request_that_waits_is_refused_when_the_run_ends() -> None:
    account = Account(UpstreamEndpoint(Wire.ANTHROPIC, "", ""), AgentBudget(tokens=1000), lambda: None)
    estimate = Tokens(900, 900)
    assert account.begin(estimate)
    allowed: list[bool] = []
    second = threading.Thread(target=lambda: allowed.append(account.begin(estimate)))
    second.start()
    account.spend(b'{"usage": {"input_tokens": 1000, "output_tokens": 0}}')
    second.join(PATIENCE)
    assert (allowed, account.cost.model_calls) == ([False], 1)


def test_one_request_at_a_time_may_use_the_whole_budget(make_run: MakeRun) -> None:
    run = make_run(Script(["ls"]), tokens=3 * ANSWER)
    assert [run.ask(max_tokens=64_000).status_code for _ in range(4)] == [200, 200, 200, 403]


@pytest.mark.parametrize(
    ("refusal", "requests", "outcome"),
    [
        (Refusal(401, {"error": "no"}), 1, AgentOutcome.BAD_KEY),
        (Refusal(429, {"error": "quota"}, {"retry-after": "7200"}), 1, AgentOutcome.LIMITED),
        (Refusal(529, {"error": "overloaded"}), MOST_FAILURES, AgentOutcome.OVERLOADED),
    ],
)
def test_an_endpoint_that_refuses_for_good_ends_the_run(
    make_run: MakeRun, refusal: Refusal, requests: int, outcome: AgentOutcome
) -> None:
    run = make_run(Script(always=refusal))
    for number in range(1, requests + 1):
        assert run.outcome is None
        assert run.ask().status_code == refusal.status, number
    assert run.outcome is outcome
    assert run.account.ended is not None
    assert (run.account.ended.until is not None) == (outcome is AgentOutcome.LIMITED)


def test_one_that_stumbles_is_asked_again(make_run: MakeRun) -> None:
    run = make_run(Script(["ls"], refusals=[Refusal(529), Refusal(429, {}, {"retry-after": "1"})]))
    assert [run.ask().status_code for _ in range(3)] == [529, 429, 200]
    assert run.outcome is None


def test_one_that_is_not_there_answers_nobody(make_run: MakeRun) -> None:
    run = make_run(Script(), url="http://127.0.0.1:1")
    assert [run.ask().status_code for _ in range(MOST_FAILURES)] == [502] * MOST_FAILURES
    assert run.outcome is AgentOutcome.OVERLOADED
