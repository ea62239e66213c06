"""Permissions of each token, over HTTP from a sandbox that knows dead and narrow tokens."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import httpx
import pytest

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError
from formulacode_dagster.sources.github.transport.answers import Resource
from formulacode_dagster.sources.github.transport.client import GitHubTransport
from formulacode_dagster.sources.github.transport.rights import examine, verdict
from sandbox.github import Account, Fault, Faults, Limits
from sandbox.github.limits import Resource as Served
from tests.support.github import CALM

TOKENS = {
    "good": Account(login="ada"),
    "twin": Account(login="ada"),
    "other": Account(login="bob"),
    "app": Account(login="formulacode[bot]", scopes=None, is_installation=True),
    "narrow": Account(login="cleo", scopes=None, refused=(Served.GRAPHQL, Served.CODE_SEARCH)),
}


@pytest.fixture
def served(world):
    world.merge("ada/engine", [])
    return world


def told(url: str, *tokens: str, **more):
    return asyncio.run(examine(url, tokens, **more))


def test_each_token_is_asked_itself_and_told_by_position(served):
    with served.serve(tokens=TOKENS) as url:
        reports = told(url, "good", "dead", "twin", "narrow")
        good, text = verdict(url, reports)
    assert not good
    first, dead, twin, narrow = text.splitlines()[1:]
    assert "2 of 4 tokens are good" in text.splitlines()[0]
    assert first.strip().startswith("token 1 of 4 (ada): core 5,000 of 5,000 until ")
    assert "code_search 10 of 10 until " in first
    assert dead.strip() == "token 2 of 4 is set aside: 401 Bad credentials"
    assert twin.strip() == "token 3 of 4 (ada): shares the limits of token 1 of 4"
    assert "no right to graphql, set aside for it" in narrow
    assert "no right to code_search" in narrow
    assert "Resource not accessible by personal access token" in narrow
    assert not any(token in text for token in ("twin", "narrow"))


def test_good_tokens_are_good(served):
    with served.serve(tokens=TOKENS) as url:
        assert verdict(url, told(url, "good", "other"))[0]


def test_a_token_of_an_app_s_installation_is_good_and_named_by_its_bot(served):
    with served.serve(tokens=TOKENS) as url:
        good, text = verdict(url, told(url, "app"))
    assert good, text
    assert "token 1 of 1 (formulacode[bot]): core 5,000 of 5,000" in text


def test_a_token_of_a_server_without_limits_is_good(served):
    with served.serve(tokens=TOKENS, is_server=True) as url:
        good, text = verdict(url, told(f"{url}/api/v3", "good", "narrow"))
    assert not good
    assert "1 of 2 tokens are good" in text
    assert "token 1 of 2 (ada): no limits" in text


def test_whose_tokens_are_is_remembered_for_the_runs(served, tmp_path):
    with served.serve(tokens=TOKENS, limits=Limits(core=10)) as url:
        told(url, "good", "twin", home=tmp_path)

        async def asked() -> GitHubTransport:
            async with GitHubTransport(url, ["good", "twin"], home=tmp_path, pacing=CALM) as client:
                for number in range(2):
                    await client.rest("/repos/ada/engine", {"n": number})
                return client

        states = asyncio.run(asked()).tokens()
    # after two questions of the preflight, both see what each of them spent
    assert sorted(state.remaining.get(Resource.CORE, -1) for state in states) == [6, 7]


@pytest.mark.parametrize("tokens", [["dead"], ["dead", "narrow"]])
def test_insufficient_tokens_are_a_configuration_error(served, tokens):
    with (
        served.serve(tokens=TOKENS) as url,
        pytest.raises(ConfigurationError, match="GH_TOKENS has a right to") as caught,
    ):
        verdict(url, told(url, *tokens))
    assert "token 1 of" in str(caught.value)


def test_a_used_up_limit_is_told_and_not_waited_for(served):
    with served.serve(tokens=TOKENS, limits=Limits(graphql=0)) as url:
        (report,) = told(url, "good")
    assert "graphql not tried: it is exhausted" in str(report)
    assert "graphql 0 of 0 until" in str(report)
    assert report.is_good


def test_a_secondary_limit_is_told_and_not_waited_for(served):
    with served.serve(tokens=TOKENS, faults=Faults.at("GET /search/code", 1, Fault.SECONDARY_LIMIT)) as url:
        (report,) = told(url, "good")
    assert "secondary rate limit" in report.limited[Resource.CODE_SEARCH]


@pytest.mark.slow
def test_a_dead_github_is_no_matter_of_tokens():
    with pytest.raises(OutsideSystemError, match="does not answer"):
        told("http://127.0.0.1:9", "good")


def test_a_narrow_token_yields_to_another_in_the_middle_of_a_run(served):
    troubles: list[str] = []
    with served.serve(tokens=TOKENS) as url:

        async def asked() -> GitHubTransport:
            async with GitHubTransport(url, ["narrow", "good"], pacing=CALM, on_trouble=troubles.append) as client:
                for _ in range(3):
                    await client.graphql("query Viewer { viewer { login } rateLimit { cost } }")
                return client

        client = asyncio.run(asked())
    assert list(client.tokens()[0].unfit_for) == [Resource.GRAPHQL]
    assert client.totals.tally(Resource.GRAPHQL).requests == 4
    (trouble,) = troubles
    assert trouble.startswith("token 1 of 2 is set aside for graphql: ")
    assert "Resource not accessible by personal access token" in trouble


def test_what_no_token_may_see_fails_alone_and_sets_nobody_aside(connect):
    refusal = {"message": "Resource not accessible by personal access token"}
    client = connect(lambda _request: httpx.Response(403, json=refusal), tokens=["one", "two"])

    async def asked() -> None:
        async with client:
            await client.rest("/repos/ada/secret")

    with pytest.raises(Exception, match="not accessible by personal") as caught:
        asyncio.run(asked())
    assert caught.value.kind == "forbidden"
    assert not any(state.set_aside or state.unfit_for for state in client.tokens())


def test_a_part_that_one_token_may_not_see_is_asked_of_another(connect):
    hidden = {"type": "FORBIDDEN", "path": ["a"], "message": "Resource not accessible by personal access token"}

    def answer(request: httpx.Request) -> httpx.Response:
        narrow = request.headers["authorization"] == "Bearer narrow"
        body = {"data": {"a": None}, "errors": [hidden]} if narrow else {"data": {"a": 1}}
        return httpx.Response(200, json=body)

    async def asked(client: GitHubTransport):
        async with client:
            return await client.graphql("query A { a }")

    assert asyncio.run(asked(connect(answer, tokens=["narrow", "good"]))).data == {"a": 1}
    alone = asyncio.run(asked(connect(answer, tokens=["narrow"])))
    assert (alone.data, alone.errors[0].type) == ({"a": None}, "FORBIDDEN")


def test_a_token_that_expires_leaves_what_the_other_was_refused(connect):
    hidden = {"type": "FORBIDDEN", "path": ["a"], "message": "Resource not accessible by personal access token"}

    def answer(request: httpx.Request) -> httpx.Response:
        if request.headers["authorization"] == "Bearer narrow":
            return httpx.Response(200, json={"data": {"a": None}, "errors": [hidden]})
        return httpx.Response(401, json={"message": "Bad credentials"})

    async def asked(client: GitHubTransport):
        async with client:
            return await client.graphql("query A { a }")

    assert asyncio.run(asked(connect(answer, tokens=["narrow", "expired"]))).data == {"a": None}


@pytest.mark.parametrize("status", [200, 403])
def test_a_token_that_expires_while_awaited_leaves_what_was_refused(connect, status):
    hidden = {"type": "FORBIDDEN", "path": ["a"], "message": "Resource not accessible by personal access token"}
    refused = {"data": {"a": None}, "errors": [hidden]} if status == 200 else {"message": hidden["message"]}

    def answer(request: httpx.Request) -> httpx.Response:
        if request.headers["authorization"] == "Bearer expired":
            return httpx.Response(401, json={"message": "Bad credentials"})
        if b"query A" in request.content:
            return httpx.Response(status, json=refused)
        return httpx.Response(200, json={"data": {"b": 1}})

    async def asked(client: GitHubTransport):
        async with client:
            # with one slot, the second query has the token that the first waits for
            queries = client.graphql("query A { a }"), client.graphql("query B { b }")
            return await asyncio.gather(*queries, return_exceptions=True)

    client = connect(answer, tokens=["narrow", "expired"], pacing=replace(CALM, concurrent=1))
    first, second = asyncio.run(asked(client))
    assert second.data == {"b": 1}
    assert (first.data if status == 200 else first.kind) == ({"a": None} if status == 200 else "forbidden")


@pytest.mark.parametrize("over", ["graphql", "rest"])
def test_a_token_that_an_organization_does_not_accept_is_not_set_aside(connect, over):
    words = "Although you appear to have the correct authorization credentials, the organization has an IP allow list"

    def answer(request: httpx.Request) -> httpx.Response:
        if request.headers["authorization"] == "Bearer good":
            return httpx.Response(200, json={"data": {"a": 1}})
        if over == "rest":
            return httpx.Response(403, json={"message": words})
        return httpx.Response(200, json={"data": None, "errors": [{"type": "FORBIDDEN", "message": words}]})

    async def asked(client: GitHubTransport) -> object:
        async with client:
            return (await (client.graphql("query A { a }") if over == "graphql" else client.rest("/repos/a/b"))).data

    client = connect(answer, tokens=["shut-out", "good"])
    assert asyncio.run(asked(client)) in ({"a": 1}, {"data": {"a": 1}})
    assert not any(state.set_aside or state.unfit_for for state in client.tokens())
    with pytest.raises(ItemFailure, match="IP allow list") as caught:
        asyncio.run(asked(connect(answer, tokens=["shut-out"])))
    assert caught.value.kind == "forbidden"
