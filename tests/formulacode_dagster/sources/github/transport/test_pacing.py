from __future__ import annotations

import asyncio
import bisect

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulacode_dagster.sources.github.transport.accounting import Ledger
from formulacode_dagster.sources.github.transport.answers import Resource
from formulacode_dagster.sources.github.transport.limit_store import LimitStore
from formulacode_dagster.sources.github.transport.pacing import LANES, Lane, Pace, Pacing
from formulacode_dagster.sources.github.transport.permits import Permits
from formulacode_dagster.sources.github.transport.tokens import TokenPool
from formulacode_dagster.sources.github.transport.waiting import Waits
from tests.support.clock import NOW, FakeClock

CEILINGS = {Lane.REST: 900, Lane.GRAPHQL: 2_000, Lane.CODE_SEARCH: 10}

ARRIVALS = st.lists(
    st.tuples(st.sampled_from(Resource), st.integers(1, 1_000), st.floats(0, 200)), min_size=1, max_size=6
)


def sent(arrivals: list[tuple[Resource, int, float]], pace: Pace, pacing: Pacing) -> list[tuple[Resource, float]]:
    """When requests go out that arrive in groups: so many of a resource, after a pause."""
    now, gone = NOW, []
    for resource, count, pause in arrivals:
        now += pause
        for _ in range(count):
            now += max(0.0, pace.wait(resource, pacing, now))
            pace.answered(resource, pacing, now, seconds=0, expected=pace.take(resource, pacing, now))
            gone.append((resource, now))
    return gone


def busiest_minute(moments: list[float]) -> int:
    return max(bisect.bisect_left(moments, start + 60) - index for index, start in enumerate(moments))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(arrivals=ARRIVALS)
def test_no_minute_holds_more_than_the_ceiling_whatever_arrives(arrivals):
    gone = sent(arrivals, Pace(), Pacing())
    for lane, ceiling in CEILINGS.items():
        moments = [moment for resource, moment in gone if lane in LANES[resource]]
        under_way = Pacing().concurrent if lane in (Lane.REST, Lane.GRAPHQL) else 0
        assert not moments or busiest_minute(moments) + under_way <= ceiling


@settings(max_examples=60, deadline=None)
@given(arrivals=ARRIVALS, refusals=st.lists(st.floats(0, 600), max_size=4))
def test_slowing_down_and_recovering_never_lets_more_through(arrivals, refusals):
    pace, pacing = Pace(), Pacing()
    gone: list[tuple[Resource, float]] = []
    now = NOW
    for index, arrival in enumerate(arrivals):
        part = sent([(arrival[0], min(arrival[1], 150), max(0.0, now - NOW) + arrival[2])], pace, pacing)
        now = part[-1][1]
        gone += part
        if index < len(refusals):
            pace.slow_down(now + refusals[index], asked_at=now)
    for lane, ceiling in CEILINGS.items():
        moments = [moment for resource, moment in gone if lane in LANES[resource]]
        assert not moments or busiest_minute(moments) <= ceiling


@pytest.mark.parametrize("resource", list(Resource))
def test_the_pace_is_most_of_what_the_ceiling_allows(resource):
    gone = [moment for _, moment in sent([(resource, 3_000, 0)], Pace(), Pacing())]
    ceiling = CEILINGS[LANES[resource][-1]]
    assert len(gone) / (gone[-1] - gone[0]) * 60 > ceiling * 0.85


def test_searches_count_as_rest_calls_too():
    pace, pacing = Pace(), Pacing(rest_points=10, burst_seconds=0)
    pace.take(Resource.CODE_SEARCH, pacing, NOW)
    assert pace.wait(Resource.CORE, pacing, NOW) == 6
    assert pace.wait(Resource.GRAPHQL, pacing, NOW) <= 0


def test_a_secondary_limit_halves_the_pace_once_and_it_recovers():
    pace, pacing = Pace(), Pacing()
    for _ in range(20):
        pace.slow_down(NOW, asked_at=NOW - 1)
    assert pace.share(NOW) == 0.5
    assert pace.slots(pacing, NOW) == 25
    pace.slow_down(NOW + 60, asked_at=NOW + 59)
    assert 0.25 < pace.share(NOW + 60) < 0.3
    assert pace.share(NOW + 3_600) == 1
    for second in range(600):
        pace.slow_down(NOW + second + 1, asked_at=NOW + second + 0.5)
    assert pace.share(NOW + 600) == pytest.approx(1 / 16)


def test_a_clock_that_is_put_back_stops_nobody():
    pace, pacing = Pace(), Pacing()
    for _ in range(200):
        pace.take(Resource.CORE, pacing, NOW)
    assert pace.wait(Resource.CORE, pacing, NOW - 86_400) <= 0
    pace.take(Resource.CORE, pacing, NOW - 86_400)
    assert 0 < pace.wait(Resource.CORE, pacing, NOW - 86_400) < 3
    for _ in range(9):
        pace.take(Resource.CODE_SEARCH, pacing, NOW)
    assert pace.wait(Resource.CODE_SEARCH, pacing, NOW) == 60
    assert pace.wait(Resource.CODE_SEARCH, pacing, NOW - 86_400) < 1


def test_a_few_searches_need_not_wait_for_each_other():
    gone = [moment - NOW for _, moment in sent([(Resource.CODE_SEARCH, 20, 0)], Pace(), Pacing())]
    assert gone[:9] == [0] * 9
    assert gone[9:18] == [60] * 9
    slowed = Pace()
    slowed.slow_down(NOW, asked_at=NOW - 1)
    slow = [moment - NOW for _, moment in sent([(Resource.CODE_SEARCH, 10, 0)], slowed, Pacing())]
    assert 60 < slow[-1] <= 120


def test_what_may_go_at_once_can_be_given_up():
    pace, pacing = Pace(), Pacing()
    pace.use_up(pacing, NOW)
    assert {round(pace.wait(resource, pacing, NOW)) for resource in (Resource.CORE, Resource.GRAPHQL)} == {0}
    expected = pace.take(Resource.GRAPHQL, pacing, NOW)
    pace.answered(Resource.GRAPHQL, pacing, NOW, seconds=0, expected=expected)
    assert pace.wait(Resource.GRAPHQL, pacing, NOW) == pytest.approx(60 / 1_750, rel=0.01)
    assert pace.wait(Resource.CODE_SEARCH, pacing, NOW) == 60


@pytest.mark.parametrize(("resource", "ceiling"), [(Resource.GRAPHQL, 60), (Resource.CORE, 30)])
@pytest.mark.parametrize("seconds", [0.4, 2.0, 9.0])
def test_no_minute_holds_more_seconds_of_answers_than_github_computes(resource, ceiling, seconds):
    pace, pacing, now = Pace(), Pacing(), NOW
    answers: list[tuple[float, float]] = []
    for _ in range(60):
        now += max(0.0, pace.wait(resource, pacing, now))
        pace.answered(resource, pacing, now, seconds=seconds, expected=pace.take(resource, pacing, now))
        answers.append((now, seconds))
    busiest = max(sum(took for then, took in answers if start <= then < start + 60) for start, _ in answers)
    assert busiest <= ceiling + seconds
    assert len(answers) * seconds / (now + 60 - NOW) * 60 < ceiling


def test_answers_that_are_expected_to_be_slow_are_not_all_requested_together():
    pace, pacing = Pace(), Pacing()
    pace.answered(Resource.GRAPHQL, pacing, NOW, seconds=4, expected=0)
    together = 0
    while pace.wait(Resource.GRAPHQL, pacing, NOW) <= 0:
        pace.take(Resource.GRAPHQL, pacing, NOW)
        together += 1
    assert together == 3


def permits(clock, pacing: Pacing, shown: list[tuple[str, float]] | None = None) -> Permits:
    said = [] if shown is None else shown
    waits = Waits(clock, Ledger(), lambda reason, seconds: said.append((reason, seconds)))
    return Permits(TokenPool(["a"]), pacing, LimitStore(), clock, waits)


def test_no_more_calls_run_at_once_than_agreed(clock):
    running, most = 0, 0

    async def call(among: Permits) -> None:
        nonlocal running, most
        async with among.hold(Resource.GRAPHQL):
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= 1

    async def all_calls() -> None:
        among = permits(clock, Pacing(concurrent=7))
        await asyncio.gather(*(call(among) for _ in range(50)))

    asyncio.run(all_calls())
    assert most == 7


def test_a_call_that_is_cancelled_gives_its_slot_back(clock):
    async def calls() -> None:
        among = permits(clock, Pacing(concurrent=1))
        for _ in range(5):

            async def call() -> None:
                async with among.hold(Resource.CORE):
                    await asyncio.sleep(60)

            task = asyncio.create_task(call())
            await asyncio.sleep(0.005)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        async with asyncio.timeout(5), among.hold(Resource.CORE):
            pass

    asyncio.run(calls())


def test_a_call_that_is_cancelled_ends_though_no_token_is_left_for_it(clock):
    async def cancelled() -> None:
        task = asyncio.create_task(permits(clock, Pacing()).hold(Resource.CORE, without={0}).__aenter__())
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())


def test_one_exhausted_resource_leaves_the_others_their_slots():
    clock = FakeClock()
    released = asyncio.Event()

    async def sleep(_seconds: float) -> None:
        await released.wait()
        clock.now += 100

    clock.sleep = sleep

    async def calls() -> None:
        among = permits(clock, Pacing(concurrent=2))
        async with among.hold(Resource.CODE_SEARCH) as permit:
            permit.exhaust(50)

        async def search() -> None:
            async with among.hold(Resource.CODE_SEARCH):
                pass

        waiting = [asyncio.create_task(search()) for _ in range(10)]
        await asyncio.sleep(0.01)
        async with asyncio.timeout(5), among.hold(Resource.CORE):
            released.set()
        await asyncio.gather(*waiting)

    asyncio.run(calls())


def test_a_long_pause_is_shown(clock):
    shown: list[tuple[str, float]] = []

    async def calls() -> None:
        among = permits(clock, Pacing(), shown)
        for _ in range(10):
            async with among.hold(Resource.CODE_SEARCH):
                continue

    asyncio.run(calls())
    assert [(reason, round(seconds)) for reason, seconds in shown] == [("pacing of code_search requests", 60)]
