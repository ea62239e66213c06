from __future__ import annotations

import asyncio

import pytest

from formulacode_dagster.github.batches import Batches, Calls


def asked(work, *waves):
    """Ask for the keys of each of *waves* in one turn of the loop, wave after wave; what came back, error or not."""

    async def inside():
        batches = Batches(work)
        ends = []
        for keys in waves:
            ends += await asyncio.gather(*(batches.ask(key) for key in keys), return_exceptions=True)
        await batches.close()
        return ends

    return asyncio.run(inside())


def test_what_is_asked_in_one_turn_is_one_batch_and_each_call_has_its_own_answer():
    seen = []

    async def work(calls: Calls[int, int]) -> None:
        seen.append(calls.keys)
        for key in reversed(calls.keys):
            await asyncio.sleep(0)
            calls.answer(key, key * 10)

    assert asked(work, [1, 2, 1], [3]) == [10, 20, 10, 30]
    assert seen == [(1, 2), (3,)]


def test_an_error_ends_its_own_call_and_what_work_raises_ends_all_that_are_open():
    async def work(calls: Calls[int, int]) -> None:
        calls.fail(1, KeyError("alone"))
        calls.answer(2, 20)
        raise OSError("the rest")

    alone, answered, rest = asked(work, [1, 2, 3])
    assert isinstance(alone, KeyError)
    assert answered == 20
    assert isinstance(rest, OSError)


def test_a_call_that_work_forgets_does_not_hang():
    async def work(calls: Calls[int, int]) -> None:
        calls.answer(1, 10)

    answered, forgotten = asked(work, [1, 2])
    assert answered == 10
    assert isinstance(forgotten, RuntimeError)
    assert "without an answer for 2" in str(forgotten)


def test_a_caller_that_gave_up_does_not_disturb_the_others():
    async def inside():
        gate = asyncio.Event()

        async def work(calls: Calls[int, int]) -> None:
            await gate.wait()
            for key in calls.keys:
                calls.answer(key, key)

        batches = Batches(work)
        first, second = (asyncio.ensure_future(batches.ask(key)) for key in (1, 2))
        await asyncio.sleep(0.01)
        first.cancel()
        gate.set()
        assert await second == 2
        with pytest.raises(asyncio.CancelledError):
            await first

    asyncio.run(inside())


def test_closing_stops_work_that_is_under_way():
    async def inside():
        async def work(calls: Calls[int, int]) -> None:
            await asyncio.sleep(3600)

        batches = Batches(work)
        call = asyncio.ensure_future(batches.ask(1))
        await asyncio.sleep(0.01)
        await batches.close()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(inside())
