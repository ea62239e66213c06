from __future__ import annotations

import pytest

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.sources.github.transport.answers import Resource
from formulacode_dagster.sources.github.transport.rate_limits import RateLimits
from formulacode_dagster.sources.github.transport.tokens import Lease, NoOtherTokenError, Pause, TokenPool
from tests.support.clock import NOW

CORE = Resource.CORE


@pytest.fixture
def limits() -> RateLimits:
    return RateLimits()


def lease(pool: TokenPool, limits: RateLimits, resource: Resource = CORE, now: float = NOW, **more) -> Lease:
    chosen = pool.choose(limits, resource, now, **more)
    assert isinstance(chosen, Lease)
    pool.spend(limits, chosen, resource, now)
    return chosen


def pause(pool: TokenPool, limits: RateLimits, resource: Resource = CORE, now: float = NOW) -> Pause:
    chosen = pool.choose(limits, resource, now)
    assert isinstance(chosen, Pause)
    return chosen


def test_the_token_with_most_left_is_chosen_per_resource(limits):
    pool = TokenPool(["a", "b"])
    first, second = lease(pool, limits), lease(pool, limits)
    assert {first.position, second.position} == {0, 1}
    for chosen, core, graphql in ((first, 10, 9), (second, 20, 8)):
        pool.learn(limits, chosen, CORE, remaining=core, reset=NOW + 100)
        pool.learn(limits, chosen, Resource.GRAPHQL, remaining=graphql, reset=NOW + 100)
    assert lease(pool, limits).position == second.position
    assert lease(pool, limits, Resource.GRAPHQL).position == first.position
    assert [state.remaining[CORE] for state in pool.states()] == [10, 20]


def test_when_nothing_is_left_the_nearest_reset_is_waited_for(limits):
    pool = TokenPool(["a", "b"])
    for seconds in (50.0, 30.0):
        pool.exhaust(limits, lease(pool, limits), CORE, until=NOW + seconds)
    assert pause(pool, limits).seconds == 30
    assert "used up" in pause(pool, limits).reason
    lease(pool, limits, Resource.CODE_SEARCH)
    lease(pool, limits, now=NOW + 30)


def test_a_secondary_limit_rests_the_token_for_everything(limits):
    pool = TokenPool(["a"])
    pool.block(limits, lease(pool, limits), until=NOW + 5)
    assert pause(pool, limits, Resource.GRAPHQL).seconds == 5
    assert "asked for a pause" in pause(pool, limits, Resource.GRAPHQL).reason


def test_a_late_answer_does_not_give_back_what_was_spent(limits):
    pool = TokenPool(["a"])
    used = lease(pool, limits)
    pool.learn(limits, used, CORE, remaining=1, reset=NOW + 100)
    pool.learn(limits, used, CORE, remaining=50, reset=NOW + 99)
    lease(pool, limits)
    pause(pool, limits)


def test_the_last_tenth_of_a_budget_is_spread_until_its_reset(limits):
    pool = TokenPool(["a"])
    pool.learn(limits, lease(pool, limits), CORE, remaining=501, limit=5_000, reset=NOW + 1_002)
    lease(pool, limits)
    assert pause(pool, limits).seconds == pytest.approx(2.0, abs=0.01)
    assert "spread" in pause(pool, limits).reason
    now, spent = NOW, 1
    while spent < 500:
        chosen = pool.choose(limits, CORE, now)
        if isinstance(chosen, Pause):
            now += chosen.seconds
        else:
            pool.spend(limits, chosen, CORE, now)
            spent += 1
    assert NOW + 900 < now < NOW + 1_002
    lease(pool, limits, now=NOW + 1_003)
    lease(pool, limits, now=NOW + 1_003)


def test_plenty_is_not_spread(limits):
    pool = TokenPool(["a"])
    pool.learn(limits, lease(pool, limits), CORE, remaining=4_000, limit=5_000, reset=NOW + 3_000)
    for _ in range(1_000):
        lease(pool, limits)


def test_tokens_of_one_user_share_what_is_left_and_others_do_not(limits):
    pool = TokenPool(["one", "two", "other"])
    for position, login in enumerate(("Ada", "ada", "bob")):
        pool.learn_owner(limits, position, login)
    first = lease(pool, limits)
    pool.learn(limits, first, CORE, remaining=0, reset=NOW + 100)
    assert {lease(pool, limits).position for _ in range(5)} == {2}
    assert limits.user("one") is limits.user("two")
    assert limits.user("one") is not limits.user("other")


def test_learning_whose_a_token_is_keeps_the_worse_of_what_was_known(limits):
    pool = TokenPool(["one", "two"])
    for remaining in (7, 3):
        pool.learn(limits, lease(pool, limits), CORE, remaining=remaining, reset=NOW + 100)
    for position in (0, 1):
        pool.learn_owner(limits, position, "ada")
    assert limits.user("one").budget(CORE).remaining == 3
    assert len(limits.users) == 1


def test_a_token_without_the_right_is_not_chosen_for_that_resource_alone(limits):
    pool = TokenPool(["a", "b"])
    pool.set_aside_for(0, Resource.GRAPHQL, "403 Resource not accessible by personal access token")
    assert {lease(pool, limits, Resource.GRAPHQL).position for _ in range(3)} == {1}
    assert {lease(pool, limits).position for _ in range(8)} == {0, 1}
    assert list(pool.states()[0].unfit_for) == [Resource.GRAPHQL]


def test_no_token_left_names_each_by_position_and_in_github_s_words(limits):
    pool = TokenPool(["a", "b"])
    pool.set_aside(lease(pool, limits), "401 Bad credentials")
    pool.set_aside_for(1, CORE, "403 Resource not accessible")
    with pytest.raises(ConfigurationError, match=r"token 1 of 2: 401 Bad.*token 2 of 2: 403 Resource"):
        pool.choose(limits, CORE, NOW)


def test_a_request_that_every_other_token_refused_has_none_left(limits):
    pool = TokenPool(["a", "b"])
    pool.set_aside_for(1, CORE, "403 Resource not accessible")
    with pytest.raises(NoOtherTokenError):
        pool.choose(limits, CORE, NOW, without={0})
    assert lease(pool, limits).position == 0


def test_no_token_can_be_read_from_what_is_known(limits):
    pool = TokenPool(["ghp_secret"])
    chosen = lease(pool, limits)
    pool.learn_owner(limits, 0, "ada")
    assert "ghp_secret" not in repr(limits) + repr(chosen) + repr(pool.states())
    assert RateLimits().key("ghp_secret") != limits.key("ghp_secret")


@pytest.mark.parametrize("text", ["abc def", "ghp_\u00e9", "a\tb"])
def test_something_that_is_no_token_is_named_before_it_is_sent(text):
    with pytest.raises(ConfigurationError, match="GH_TOKENS") as caught:
        TokenPool([text])
    assert text not in str(caught.value)
