from __future__ import annotations

import asyncio
from itertools import pairwise

import httpx
import pytest

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError
from formulacode_dagster.models.items import Stage
from formulacode_dagster.sources.github.transport.client import GitHubTransport
from formulacode_dagster.sources.github.transport.pacing import Pacing
from formulacode_dagster.sources.github.transport.retry import TransportRetries
from formulacode_dagster.sources.github.transport.tokens import TokenPool
from sandbox.server import serving
from tests.support.clock import NOW
from tests.support.github import TOKEN

OK = {"data": {"viewer": {"login": "me"}, "rateLimit": {"cost": 3}}}
QUERY = "query Viewer { viewer { login } rateLimit { cost } }"


def script(*answers):
    """Answers in turn, the last one for ever; an exception is raised."""
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        chosen = answers[min(len(sent), len(answers)) - 1]
        if isinstance(chosen, Exception):
            raise chosen
        return httpx.Response(chosen.status_code, headers=chosen.headers, content=chosen.content)

    answer.sent = sent
    return answer


def run(client: GitHubTransport, ask):
    async def inside():
        async with client:
            return await ask(client)

    return asyncio.run(inside())


def graphql(client: GitHubTransport):
    return run(client, lambda client: client.graphql(QUERY))


def rest(client: GitHubTransport, path: str = "/repos/a/b", **more):
    return run(client, lambda client: client.rest(path, **more))


def said(message: str, status: int, **headers: str) -> httpx.Response:
    return httpx.Response(
        status, json={"message": message}, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )


def good() -> httpx.Response:
    return httpx.Response(200, json=OK)


def errors(*entries: dict, data=None) -> httpx.Response:
    return httpx.Response(200, json={"data": data, "errors": list(entries)})


def test_an_answer_is_returned_and_accounted(connect):
    client = connect(script(good()))
    assert graphql(client).data["viewer"] == {"login": "me"}
    assert (client.cost.api_points, client.cost.api_requests) == (3, 1)
    assert client.totals.limit_hits == 0


def test_work_can_be_accounted_apart_also_when_it_runs_at_the_same_time(connect):
    client = connect(script(good()))

    async def piece(client: GitHubTransport, calls: int) -> int:
        with client.account() as account:
            await asyncio.gather(*(client.graphql(QUERY) for _ in range(calls)))
        return account.cost.api_requests

    async def both(client: GitHubTransport):
        return await asyncio.gather(piece(client, 2), piece(client, 5))

    assert run(client, both) == [2, 5]
    assert client.cost.api_requests == 7


@pytest.mark.parametrize(
    ("answer", "wait"),
    [
        (said("You have exceeded a secondary rate limit", 403, retry_after="17"), 17),
        (said("slow down", 429, retry_after="3"), 3),
        (said("API rate limit exceeded", 403, x_ratelimit_remaining="0", x_ratelimit_reset=str(int(NOW) + 1234)), 1234),
    ],
)
def test_a_limit_is_waited_for_exactly_as_long_as_github_says_and_shown(connect, clock, answer, wait):
    shown = []
    client = connect(script(answer, good()), on_wait=lambda reason, seconds: shown.append((reason, seconds)))
    graphql(client)
    assert sum(clock.slept) == wait
    assert [round(seconds) for _, seconds in shown] == list(range(wait, 0, -60))
    assert "limit" in shown[0][0]
    waited = sum(tally.waited_seconds for tally in client.totals.tallies.values())
    assert (client.totals.limit_hits, waited) == (1, wait)


def test_a_limit_without_a_time_is_waited_for_longer_and_longer(connect, clock):
    limit = said("You have exceeded a secondary rate limit", 403)
    graphql(connect(script(limit, limit, limit, good())))
    assert 60 + 120 + 240 <= sum(clock.slept) <= 1.5 * (60 + 120 + 240)


def test_the_reset_is_measured_by_github_s_clock(connect, clock):
    limited = said(
        "API rate limit exceeded",
        403,
        x_ratelimit_remaining="0",
        x_ratelimit_reset=str(int(NOW) + 1000),
        date="Sun, 01 Mar 2026 00:16:00 GMT",
    )
    graphql(connect(script(limited, good())))
    assert clock.slept == [40]


def test_a_primary_limit_in_a_200_is_waited_for(connect, clock):
    limited = errors({"type": "RATE_LIMITED", "message": "API rate limit exceeded"})
    limited.headers["x-ratelimit-reset"] = str(int(NOW) + 60)
    limited.headers["x-ratelimit-remaining"] = "0"
    assert graphql(connect(script(limited, good()))).data
    assert clock.slept == [60]


def test_limits_without_end_stop_the_stage_with_github_s_words(connect):
    with pytest.raises(OutsideSystemError, match="abuse detection"):
        graphql(connect(script(said("abuse detection", 403, retry_after="1"))))


@pytest.mark.parametrize(
    "fault",
    [
        said("bad gateway", 502),
        said("", 500),
        httpx.Response(200, text='{"data": {"view'),
        httpx.Response(502, text="<html>oops</html>"),
        httpx.ReadError("reset"),
        httpx.RemoteProtocolError("peer closed connection without sending complete message body"),
        httpx.ReadTimeout("slow"),
        errors({"message": "Something went wrong while executing your query"}),
        httpx.Response(200, json={}),
        httpx.Response(200, json=[]),
    ],
)
def test_passing_faults_are_tried_again(connect, clock, fault):
    answers = script(fault, fault, good())
    assert graphql(connect(answers)).data
    assert len(answers.sent) == 3
    assert clock.slept[0] < clock.slept[1] * 2.01


@pytest.mark.parametrize("fault", [said("bad gateway", 502), httpx.ConnectError("refused")])
def test_a_dead_github_stops_the_stage(connect, fault):
    with pytest.raises(OutsideSystemError, match="GITHUB_API_URL") as caught:
        graphql(connect(script(fault)))
    assert caught.value.system == "github"


def test_a_question_too_heavy_for_a_living_github_fails_alone(connect):
    def answer(request: httpx.Request) -> httpx.Response:
        return good() if b"Probe" in request.content else said("timeout", 502)

    with pytest.raises(ItemFailure) as caught:
        graphql(connect(answer))
    assert caught.value.kind == "overloaded"


@pytest.mark.parametrize("where", [{}, {"path": ["search", "nodes", 3]}])
def test_a_query_over_the_limits_of_resources_is_too_heavy_and_not_sent_again(connect, where):
    entry = {"type": "RESOURCE_LIMITS_EXCEEDED", "message": "Resource limits for this query exceeded.", **where}
    answers = script(errors(entry, data={"search": {"nodes": [{}, {}, {}, None]}}), good())
    with pytest.raises(ItemFailure, match="Resource limits for this query exceeded") as caught:
        graphql(connect(answers))
    assert caught.value.kind == "overloaded"
    assert len(answers.sent) == 1


@pytest.mark.parametrize(
    ("status", "kind"), [(404, "vanished"), (410, "vanished"), (451, "vanished"), (403, "forbidden"), (422, "request")]
)
def test_refusals_for_good_are_not_tried_again_and_keep_github_s_words(connect, status, kind):
    answers = script(said("Resource protected by a unicorn", status))
    with pytest.raises(ItemFailure, match="protected by a unicorn") as caught:
        rest(connect(answers))
    assert caught.value.kind == kind
    assert len(answers.sent) == 1


def test_what_was_found_is_kept_beside_what_was_not(connect):
    partial = errors({"type": "NOT_FOUND", "path": ["nodes", 1], "message": "gone"}, data={"nodes": [{"id": 1}, None]})
    answer = graphql(connect(script(partial)))
    assert answer.data == {"nodes": [{"id": 1}, None]}
    assert answer.missing("nodes", 1)
    assert not answer.missing("nodes", 0)


def test_an_error_about_the_whole_query_is_never_an_empty_answer(connect):
    broken = errors({"type": "undefinedField", "message": "Field 'x' doesn't exist"}, data={})
    with pytest.raises(ItemFailure, match="Field 'x' doesn't exist"):
        graphql(connect(script(broken)))


def test_a_dead_token_is_set_aside_and_another_used(connect):
    def answer(request: httpx.Request) -> httpx.Response:
        dead = request.headers["authorization"] == "Bearer dead"
        return said("Bad credentials", 401) if dead else good()

    troubles = []
    client = connect(answer, tokens=("dead", "alive"), on_trouble=troubles.append)
    assert graphql(client).data
    assert troubles == ["token 1 of 2 is set aside: 401 Bad credentials"]
    assert [state.set_aside for state in client.tokens()] == ["401 Bad credentials", ""]


def test_only_dead_tokens_are_a_matter_of_configuration(connect):
    with pytest.raises(ConfigurationError, match="GH_TOKENS") as caught:
        graphql(connect(script(said("Bad credentials", 401))))
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize(
    "answer", [said("Requires authentication", 401), said("API rate limit exceeded", 403, retry_after="9")]
)
def test_a_token_is_asked_for_where_the_api_demands_one(connect, clock, answer):
    with pytest.raises(ConfigurationError, match="GH_TOKENS"):
        graphql(connect(script(answer), tokens=()))
    assert clock.slept == []


def test_a_redirect_is_followed_and_told(connect):
    moved = said("Moved", 301, location="https://api.test/repositories/1")
    answers = script(moved, httpx.Response(200, json={"full_name": "new/name"}))
    answer = rest(connect(answers))
    assert answer.data == {"full_name": "new/name"}
    assert answer.moved_to == "https://api.test/repositories/1"
    assert answers.sent[1].headers["authorization"]


def test_a_redirect_to_another_host_gets_no_token(connect):
    answers = script(said("Moved", 301, location="https://evil.test/repositories/1"))
    with pytest.raises(ItemFailure, match="another host"):
        rest(connect(answers))
    assert len(answers.sent) == 1


def test_a_redirect_in_circles_ends(connect):
    with pytest.raises(ItemFailure, match="circles"):
        rest(connect(script(said("Moved", 301, location="https://api.test/repos/a/b"))))


def test_another_media_type_comes_as_text(connect):
    answer = rest(connect(script(httpx.Response(200, text="diff --git"))), accept="application/vnd.github.diff")
    assert answer.data == "diff --git"


def test_the_token_is_in_no_error_and_no_representation(connect):
    client = connect(script(said("no", 404)))
    with pytest.raises(ItemFailure) as caught:
        rest(client)
    inside = vars(client)
    shown = [caught.value, client.tokens(), inside["_pool"]._tokens, inside["_exchange"], inside["_store"]]
    assert TOKEN not in "".join(map(repr, shown))


def test_a_body_that_breaks_off_on_the_wire_is_tried_again(clock):
    calls = []

    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": f"{message['type']}.complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        calls.append(scope["path"])
        whole = b'{"data": {"viewer": {}}}'
        cut = len(calls) == 1
        headers = [(b"content-type", b"application/json")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": whole[:9] if cut else whole})

    with serving(app) as url:
        client = GitHubTransport(url, [TOKEN], clock=clock, retries=TransportRetries())
        assert graphql(client).data == {"viewer": {}}
    assert calls == ["/graphql", "/graphql"]


def test_a_server_that_names_a_time_is_given_it(connect, clock):
    graphql(connect(script(said("maintenance", 503, retry_after="7"), good())))
    assert sum(clock.slept) == 7


@pytest.mark.parametrize(
    ("limit", "waits"),
    [
        (errors({"message": "You have exceeded a secondary rate limit"}), 60),
        (errors({"type": "RATE_LIMITED", "message": "API rate limit exceeded"}), 60),
        (errors({"type": "RATE_LIMIT", "message": "API rate limit already exceeded for user ID 1."}), 60),
        (said("slow down", 429), 60),
    ],
)
def test_a_limit_in_every_form_is_waited_for_a_minute_at_least(connect, clock, limit, waits):
    client = connect(script(limit, good()))
    graphql(client)
    assert waits <= sum(clock.slept) <= 1.5 * waits
    assert (client.totals.limit_hits, client.cost.api_requests, client.cost.api_points) == (1, 2, 3)


def test_another_user_s_token_goes_on_while_one_is_used_up(connect, clock):
    def answer(request: httpx.Request) -> httpx.Response:
        if request.headers["authorization"] == "Bearer used-up":
            headers = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW) + 3_000)}
            return httpx.Response(403, json={"message": "API rate limit exceeded"}, headers=headers)
        return good()

    client = connect(answer, tokens=("used-up", "fresh"))
    for_all = run(client, lambda client: asyncio.gather(*(client.graphql(QUERY) for _ in range(20))))
    assert len(for_all) == 20
    assert clock.slept == []
    assert client.tokens()[0].remaining == {"graphql": 0}


def test_after_a_secondary_limit_the_pace_is_halved(connect, clock):
    sent: list[float] = []

    def answer(_request: httpx.Request) -> httpx.Response:
        sent.append(clock.now)
        return said("You have exceeded a secondary rate limit", 403, retry_after="60") if len(sent) == 1 else good()

    client = connect(answer, pacing=Pacing(graphql_points=60, burst_seconds=0))
    run(client, lambda client: asyncio.gather(*(client.graphql(QUERY) for _ in range(10))))
    gaps = [after - before for before, after in pairwise(sent[1:])]
    assert sent[1] - sent[0] >= 60
    assert all(1.6 < gap <= 2 for gap in gaps)


def test_slow_answers_are_requested_as_fast_as_github_can_compute_them(connect, clock):
    def slow(_request: httpx.Request) -> httpx.Response:
        clock.now += 4
        return good()

    async def all_in_turn(client: GitHubTransport) -> None:
        for _ in range(30):
            await client.graphql(QUERY)

    shown: list[str] = []
    run(connect(slow, pacing=Pacing(), on_wait=lambda reason, _seconds: shown.append(reason)), all_in_turn)
    assert 120 / 45 * 60 - 20 < clock.now - NOW < 120 / 45 * 60 + 10
    assert set(shown) == {"pacing of graphql requests"}


@pytest.mark.parametrize(("seconds", "sent"), [(1, 6), (10, 2)])
def test_a_query_for_which_github_has_no_time_is_not_sent_a_third_time(connect, clock, seconds, sent):
    requests: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if b"Probe" in request.content:
            return good()
        clock.now += seconds
        requests.append(request.method)
        return httpx.Response(502)

    client = connect(answer)
    with pytest.raises(ItemFailure) as caught:
        graphql(client)
    assert (caught.value.kind, len(requests)) == ("overloaded", sent)
    assert (client._store._limits.pace.slowed_to < 1) == (seconds == 10), "the pace is halved"


def test_what_was_asked_is_told_by_resource_with_waits_and_retries(connect):
    answers = script(said("", 502), said("slow", 429, retry_after="30"), httpx.Response(200, json={}))
    client = connect(answers)
    rest(client, "/search/code")
    (row,) = client.usage(run_id="run", stage=Stage.REPOSITORIES, month="2026-02")
    told = (row.run_id, row.stage, row.month, row.resource, row.requests, row.points, row.retries, row.limit_hits)
    assert told == ("run", Stage.REPOSITORIES, "2026-02", "code_search", 3, 1, 1, 1)
    assert 30 < row.waited_seconds < 31
    assert row.bytes > 0


def test_the_public_api_and_a_list_of_tokens_are_enough():
    client = GitHubTransport(tokens=["one", "two"])
    assert [state.name for state in client.tokens()] == ["token 1 of 2", "token 2 of 2"]
    assert client._url == "https://api.github.com"
    assert GitHubTransport(tokens=TokenPool(["one"])).tokens() == TokenPool(["one"]).states()
