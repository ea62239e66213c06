"""Limits, tokens and books."""

from __future__ import annotations

import asyncio
import time

import httpx
import pytest

from sandbox.github import Account, Faults, Limits, ScriptedFault, app
from sandbox.github.budgets import Budgets
from sandbox.github.faults import Fault
from sandbox.github.limits import Resource
from tests.support.github import UNLIMITED

VIEWER = {"query": "{ viewer { login } rateLimit { remaining } }"}


def test_graphql_says_that_its_points_are_used_up_with_status_200(small, caller):
    asks = caller(limits=Limits(graphql=2))
    answers = [asks.http.post("/graphql", json=VIEWER) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 200]
    assert "errors" not in answers[1].json()
    assert answers[2].json()["errors"][0]["type"] == "RATE_LIMIT"
    assert answers[2].headers["x-ratelimit-remaining"] == "0"
    assert answers[2].headers["x-ratelimit-resource"] == "graphql"
    assert 3590 < int(answers[2].headers["x-ratelimit-reset"]) - time.time() <= 3601
    assert asks.books["limit_hits"] == {"primary graphql": 1}
    assert asks.books["points"] == {"graphql": 2}


@pytest.mark.parametrize(
    ("limits", "path"),
    [
        (Limits(core=1), "/repos/ada/engine"),
        (Limits(code_search=1), "/search/code?q=filename:file1.txt"),
    ],
)
def test_rest_says_that_its_budget_is_used_up_with_status_403(small, caller, limits, path):
    asks = caller(limits=limits)
    good, bad = asks.http.get(path), asks.http.get(path)
    assert (good.status_code, good.headers["x-ratelimit-remaining"]) == (200, "0")
    assert (bad.status_code, bad.headers["x-ratelimit-remaining"]) == (403, "0")
    assert "API rate limit exceeded" in bad.json()["message"]
    assert "retry-after" not in bad.headers


def test_budgets_are_per_resource_and_whole_again_after_their_window(small):
    now = [1000.5]
    budgets = Budgets(Limits(core=2, code_search=1), lambda: now[0])
    budgets.charge("ada", Resource.CORE, 2)
    assert budgets.exhausted("ada", Resource.CORE)
    assert not budgets.exhausted("ada", Resource.CODE_SEARCH)
    assert not budgets.exhausted("bob", Resource.CORE)
    assert budgets.rate("ada", Resource.CORE).reset == 4601
    now[0] = 4600.6
    assert budgets.rate("ada", Resource.CORE).remaining == 2


def test_a_burst_meets_the_secondary_limit_until_retry_after():
    now = [0.0]
    budgets = Budgets(Limits(rest_points=2, retry_after_seconds=30), lambda: now[0])
    assert [budgets.refused("ada", Resource.CORE) for _ in range(3)] == [None, None, "secondary points"]
    assert budgets.refused("bob", Resource.CORE) is None
    assert budgets.refused("ada", Resource.GRAPHQL) == "secondary penalty"
    now[0] = 12.5
    assert budgets.retry_after("ada") == 18
    now[0] = 61.0
    assert budgets.refused("ada", Resource.CORE) is None


def test_the_secondary_limit_is_a_403_in_github_s_words(small, caller):
    asks = caller(limits=Limits(rest_points=1))
    asks.get("/repos/ada/engine")
    refused = asks.get("/repos/ada/engine")
    assert (refused.status_code, refused.headers["retry-after"]) == (403, "60")
    assert "secondary rate limit" in refused.json()["message"]
    assert refused.headers["x-ratelimit-remaining"] != "0"
    silent = caller(limits=Limits(rest_points=1, retry_after_seconds=None))
    silent.get("/repos/ada/engine")
    assert "retry-after" not in silent.get("/repos/ada/engine").headers


def test_more_requests_at_once_than_allowed_meet_the_secondary_limit(small, folder):
    slow = Faults(chances={Fault.SLOW: 1.0}, slow_seconds=0.3)
    application = app(folder, limits=Limits(concurrent=3), faults=slow)

    async def burst() -> list[int]:
        transport = httpx.ASGITransport(application)
        async with httpx.AsyncClient(transport=transport, base_url="http://github") as http:
            asked = (http.get("/repos/ada/engine", headers={"authorization": "bearer x"}) for _ in range(5))
            return sorted(answer.status_code for answer in await asyncio.gather(*asked))

    assert asyncio.run(burst()) == [200, 200, 200, 403, 403]
    assert application.state.accounting.limit_hits["secondary concurrency"] >= 1
    assert application.state.accounting.most_under_way >= 4


def test_tokens_of_one_user_share_a_budget_and_others_do_not(small, caller):
    tokens = {"one": Account(login="ada"), "two": Account(login="ada"), "three": Account(login="bob")}
    application = {"limits": Limits(core=5), "tokens": tokens}
    asks = caller("one", **application)
    asks.get("/user")
    again = asks.http.get("/user", headers={"authorization": "token two"})
    assert (again.json()["login"], again.headers["x-ratelimit-remaining"]) == ("ada", "3")
    other = asks.http.get("/user", headers={"authorization": "Bearer three"})
    assert (other.json()["login"], other.headers["x-ratelimit-remaining"]) == ("bob", "4")
    assert other.headers["x-oauth-scopes"] == "read:org, repo"


def test_a_bad_token_is_a_401_that_does_not_repeat_it(small, caller):
    asks = caller("secret-token", tokens={"good": Account(login="ada")})
    for answer in (asks.get("/user"), asks.http.post("/graphql", json=VIEWER)):
        assert (answer.status_code, answer.json()["message"]) == (401, "Bad credentials")
        assert "secret-token" not in answer.text


def test_without_a_token_graphql_and_code_search_are_closed(small, caller):
    asks = caller(None, limits=Limits())
    assert asks.http.post("/graphql", json=VIEWER).status_code == 401
    assert asks.get("/search/code", q="filename:file1.txt").status_code == 401
    open_ = asks.get("/repos/ada/engine")
    assert (open_.status_code, open_.headers["x-ratelimit-limit"]) == (200, "60")


def test_asking_for_the_limits_is_free_and_works_when_they_are_used_up(small, caller):
    asks = caller(limits=Limits(core=1))
    asks.get("/repos/ada/engine")
    told = asks.get("/rate_limit")
    assert told.status_code == 200
    assert told.json()["resources"]["core"]["remaining"] == 0
    assert told.json()["resources"]["graphql"]["limit"] == 5000


def test_the_books_count_by_endpoint_and_begin_anew(small, caller):
    asks = caller()
    asks.get("/repos/ada/engine")
    asks.get("/repos/ada/engine/pulls/1")
    asks.query("query Who { viewer { login } }")
    assert asks.books["endpoints"] == {
        "GET /repos/{owner}/{repo}": 1,
        "GET /repos/{owner}/{repo}/pulls/{number}": 1,
        "graphql": 1,
        "graphql Who": 1,
    }
    assert (asks.books["total"], asks.books["statuses"]) == (3, {"200": 3})
    assert asks.http.post("/_sandbox/reset").json()["total"] == 0
    assert asks.books["endpoints"] == {}


def test_every_answer_has_a_request_id(small, caller):
    ids = {caller().get("/user").headers["x-github-request-id"], caller().get("/nowhere").status_code}
    assert len(ids) == 2


def test_limits_without_limits_still_cut_short(small, caller):
    assert UNLIMITED.search_cap == 1000
    asks = caller(limits=UNLIMITED, faults=Faults(scripted=(ScriptedFault(call=99),)))
    assert asks.get("/repos/ada/engine").headers["x-ratelimit-remaining"] == "999999999"


def test_a_token_without_a_right_is_refused_in_each_api_s_way(small, caller):
    tokens = {
        "fine": Account(login="ada", scopes=None, refused=(Resource.GRAPHQL, Resource.CODE_SEARCH)),
        "classic": Account(login="bob", scopes=()),
    }
    asks = caller("fine", tokens=tokens)
    told = asks.http.post("/graphql", json=VIEWER)
    assert (told.status_code, told.json()["errors"][0]["type"]) == (200, "FORBIDDEN")
    assert asks.get("/search/code", q="filename:file1.txt").status_code == 403
    user = asks.get("/user")
    assert (user.status_code, "x-oauth-scopes" in user.headers) == (200, False)
    assert caller("classic", tokens=tokens).get("/user").headers["x-oauth-scopes"] == ""
    assert asks.books["points"] == {"core": 1}


def test_the_clock_can_be_put_forward_instead_of_waiting(small, caller):
    asks = caller(limits=Limits(core=1))
    asks.get("/user")
    assert asks.get("/user").status_code == 403
    told = asks.http.post("/_sandbox/clock", json={"seconds": 3601}).json()
    assert told["now"] - time.time() > 3590
    assert asks.get("/user").status_code == 200


@pytest.mark.parametrize(("resource", "most"), [(Resource.GRAPHQL, 60), (Resource.CORE, 90)])
def test_more_seconds_of_answers_than_fit_in_a_minute_are_refused(resource, most):
    now = [1000.0]
    budgets = Budgets(Limits(), lambda: now[0])
    budgets.work("ada", resource, most)
    assert budgets.refused("ada", resource) is None
    budgets.work("ada", resource, 0.5)
    assert budgets.refused("bob", resource) is None
    assert budgets.refused("ada", resource) == "secondary seconds"
    now[0] += 60.5
    assert budgets.refused("ada", resource) is None
