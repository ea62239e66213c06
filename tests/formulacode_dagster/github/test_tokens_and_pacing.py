from __future__ import annotations

import asyncio

import pytest

from formulacode_dagster.github.answers import Resource
from formulacode_dagster.github.pacing import Pacer, Pacing
from formulacode_dagster.github.tokens import Lease, TokenPool
from formulacode_dagster.models.errors import ConfigurationError

CEILINGS = {Resource.CORE: 900, Resource.GRAPHQL: 2_000, Resource.SEARCH: 30, Resource.CODE_SEARCH: 10}


def lease(pool: TokenPool, resource: Resource = Resource.CORE) -> Lease:
    chosen = pool.lease(resource)
    assert isinstance(chosen, Lease)
    return chosen


def test_the_token_with_most_left_is_chosen_per_resource(clock):
    pool = TokenPool(["a", "b"], clock)
    first, second = lease(pool), lease(pool)
    assert {first.position, second.position} == {0, 1}
    pool.learn(first, Resource.CORE, remaining=10, reset=clock.now + 100)
    pool.learn(second, Resource.CORE, remaining=20, reset=clock.now + 100)
    pool.learn(first, Resource.GRAPHQL, remaining=9, reset=clock.now + 100)
    pool.learn(second, Resource.GRAPHQL, remaining=8, reset=clock.now + 100)
    assert lease(pool).position == second.position
    assert lease(pool, Resource.GRAPHQL).position == first.position


def test_when_nothing_is_left_the_nearest_reset_is_waited_for(clock):
    pool = TokenPool(["a", "b"], clock)
    for seconds in (50.0, 30.0):
        pool.exhaust(lease(pool), Resource.CORE, seconds=seconds)
    assert pool.lease(Resource.CORE) == 30
    lease(pool, Resource.SEARCH)
    clock.now += 30
    lease(pool)


def test_a_secondary_limit_rests_the_token_for_everything(clock):
    pool = TokenPool(["a"], clock)
    pool.block(lease(pool), seconds=5)
    assert pool.lease(Resource.GRAPHQL) == 5


def test_a_late_answer_does_not_give_back_what_was_spent(clock):
    pool = TokenPool(["a"], clock)
    used = lease(pool)
    pool.learn(used, Resource.CORE, remaining=1, reset=clock.now + 100)
    pool.learn(used, Resource.CORE, remaining=50, reset=clock.now + 99)
    lease(pool)
    assert isinstance(pool.lease(Resource.CORE), float)


def test_something_that_is_no_token_is_named_before_it_is_sent(clock):
    with pytest.raises(ConfigurationError, match="GH_TOKENS"):
        TokenPool(["abc def"], clock)


@pytest.mark.parametrize("resource", list(Resource))
def test_pacing_stays_below_the_documented_ceiling_in_every_minute(clock, resource):
    sent: list[float] = []

    async def calls() -> None:
        pacer = Pacer(Pacing(), clock, lambda _reason, _seconds: None)
        for _ in range(CEILINGS[resource] * 3):
            async with pacer.permit(resource):
                sent.append(clock.now)

    asyncio.run(calls())
    busiest = max(sum(start <= moment < start + 60 for moment in sent) for start in sent[:: max(1, len(sent) // 50)])
    assert busiest <= CEILINGS[resource]
    assert len(sent) / (sent[-1] - sent[0]) * 60 > CEILINGS[resource] * 0.8


def test_no_more_calls_run_at_once_than_agreed(clock):
    running, most = 0, 0

    async def call(pacer: Pacer) -> None:
        nonlocal running, most
        async with pacer.permit(Resource.GRAPHQL):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= 1

    async def all_calls() -> None:
        pacer = Pacer(Pacing(concurrent=7), clock, lambda _reason, _seconds: None)
        await asyncio.gather(*(call(pacer) for _ in range(50)))

    asyncio.run(all_calls())
    assert most == 7


def test_a_long_pause_is_shown(clock):
    shown = []

    async def calls() -> None:
        pacer = Pacer(Pacing(), clock, lambda reason, seconds: shown.append((reason, round(seconds))))
        for _ in range(3):
            async with pacer.permit(Resource.CODE_SEARCH):
                continue

    asyncio.run(calls())
    assert shown == [("pacing of code_search requests", 7)]
