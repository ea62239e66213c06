from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from formulacode_dagster.library import PR, HookRegistry
from formulacode_dagster.models.errors import ConfigurationError, FormulaCodeError
from formulacode_dagster.operating.store.database import Database

A, B = (PR(repository="astropy/astropy", issue_number=number) for number in (1, 2))


class Counted:
    """A hook that counts its calls."""

    def __init__(self, result: Any = "short", seconds: float = 0.0) -> None:
        self.calls = 0
        self.result = result
        self.seconds = seconds

    def __call__(self, pr: PR, words: int = 20, *, style: str = "plain") -> Any:
        self.calls += 1
        time.sleep(self.seconds)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result


@pytest.fixture
def hooks(database: Database) -> HookRegistry:
    return HookRegistry(database)


def test_the_second_call_is_free_in_this_registry_and_in_any_other(hooks: HookRegistry, database_url: str) -> None:
    first = Counted({"words": [1, None, True]})
    hooks.register("summarize", first)
    assert hooks.call("summarize", A) == hooks.call("summarize", A) == {"words": [1, None, True]}
    with HookRegistry(database_url) as other:
        later = Counted("unused")
        other.register("summarize", later)
        assert other.call("summarize", A) == {"words": [1, None, True]}
    assert (first.calls, later.calls) == (1, 0)


def test_a_result_is_keyed_by_entity_name_and_normalized_arguments(hooks: HookRegistry) -> None:
    summarize = Counted()
    hooks.register("summarize", summarize)
    hooks.register("other", summarize)
    for call in (
        lambda: hooks.call("summarize", A),
        lambda: hooks.call("summarize", A, 20),
        lambda: hooks.call("summarize", A, words=20, style="plain"),
    ):
        call()
    assert summarize.calls == 1
    hooks.call("summarize", B)
    hooks.call("summarize", A, 21)
    hooks.call("other", A)
    hooks.call("summarize", A, style="x" * 5_000)
    hooks.call("summarize", A, style="x" * 5_000)
    assert summarize.calls == 5


def test_none_is_a_result(hooks: HookRegistry) -> None:
    nothing = Counted(None)
    hooks.register("nothing", nothing)
    assert hooks.call("nothing", A) is hooks.call("nothing", A) is None
    assert nothing.calls == 1


def test_a_new_version_is_computed_anew(hooks: HookRegistry) -> None:
    hooks.register("summarize", Counted("old"))
    assert hooks.call("summarize", A) == "old"
    hooks.register("summarize", Counted("new"), version="2")
    assert hooks.call("summarize", A) == "new"


def test_what_is_forgotten_is_computed_anew(hooks: HookRegistry) -> None:
    summarize = Counted()
    hooks.register("summarize", summarize)
    hooks.call("summarize", A)
    hooks.call("summarize", B)
    assert hooks.forget("summarize", A) == 1
    hooks.call("summarize", A)
    assert summarize.calls == 3
    assert hooks.forget("summarize") == 2


def test_async_functions_and_running_loops_work_too(hooks: HookRegistry) -> None:
    calls = []

    async def summarize(pr: PR) -> str:
        calls.append(pr)
        await asyncio.sleep(0)
        return pr.item

    hooks.register("async", summarize)
    hooks.register("sync", Counted())
    assert hooks.call("async", A) == "astropy/astropy#1"

    async def notebook() -> list[Any]:
        return [await hooks.call("async", A), await hooks.call("async", B), await hooks.call("sync", A)]

    assert asyncio.run(notebook()) == ["astropy/astropy#1", "astropy/astropy#2", "short"]
    assert calls == [A, B]


def test_a_failing_hook_is_not_kept(hooks: HookRegistry) -> None:
    failing = Counted(ValueError("no words"))
    hooks.register("summarize", failing)
    for _ in range(2):
        with pytest.raises(ValueError, match="no words"):
            hooks.call("summarize", A)
    failing.result = "now"
    assert (hooks.call("summarize", A), failing.calls) == ("now", 3)


def test_tasks_at_once_compute_once(hooks: HookRegistry) -> None:
    slow = Counted(seconds=0.2)
    hooks.register("slow", slow)

    async def together() -> list[Any]:
        return await asyncio.gather(*(hooks.call("slow", A) for _ in range(5)))

    assert (asyncio.run(together()), slow.calls) == (["short"] * 5, 1)


def test_threads_at_once_compute_once(hooks: HookRegistry) -> None:
    slow = Counted(seconds=0.2)
    hooks.register("slow", slow)
    ready = threading.Barrier(4)

    def call(_: int) -> Any:
        ready.wait()
        return hooks.call("slow", A)

    with ThreadPoolExecutor(4) as threads:
        assert (list(threads.map(call, range(4))), slow.calls) == (["short"] * 4, 1)


def test_tasks_that_wait_for_a_failing_one_fail_with_it(hooks: HookRegistry) -> None:
    hooks.register("slow", Counted(ValueError("no words"), seconds=0.1))

    async def together() -> list[Any]:
        return await asyncio.gather(*(hooks.call("slow", A) for _ in range(3)), return_exceptions=True)

    assert [str(answer) for answer in asyncio.run(together())] == ["no words"] * 3


def test_when_the_first_is_cancelled_the_next_computes(hooks: HookRegistry) -> None:
    calls = []

    async def together() -> Any:
        begun = asyncio.Event()

        async def slow(pr: PR) -> str:
            calls.append(pr)
            begun.set()
            await asyncio.sleep(5 if len(calls) == 1 else 0)
            return "there"

        hooks.register("slow", slow)
        first = asyncio.create_task(hooks.call("slow", A))
        await begun.wait()
        second = asyncio.create_task(hooks.call("slow", A))
        await asyncio.sleep(0.05)
        first.cancel()
        return await second

    assert (asyncio.run(together()), len(calls)) == ("there", 2)


@pytest.mark.parametrize("bad", [{1, 2}, (1, 2), float("nan"), object(), {1: "x"}])
def test_what_json_cannot_hold_is_an_error_that_says_so(hooks: HookRegistry, bad: Any) -> None:
    hooks.register("bad", Counted(bad))
    with pytest.raises(FormulaCodeError, match="JSON"):
        hooks.call("bad", A)
    if not isinstance(bad, tuple | dict):
        with pytest.raises(FormulaCodeError, match="JSON"):
            hooks.call("bad", A, style=bad)


def test_an_unknown_name_is_said(hooks: HookRegistry) -> None:
    with pytest.raises(ConfigurationError, match="summarise"):
        hooks.call("summarise", A)


def test_wrong_arguments_are_refused_before_anything_runs(hooks: HookRegistry) -> None:
    hooks.register("summarize", Counted())
    with pytest.raises(TypeError, match="colour"):
        hooks.call("summarize", A, colour="red")


def test_a_hook_that_waits_for_itself_is_told(hooks: HookRegistry) -> None:
    hooks.register("circle", lambda pr: hooks.call("circle", pr))
    with pytest.raises(FormulaCodeError, match="its own result"):
        hooks.call("circle", A)


def test_hooks_may_use_each_other(hooks: HookRegistry) -> None:
    hooks.register("inner", lambda pr: pr.issue_number + 1)
    hooks.register("outer", lambda pr: 1 + hooks.call("inner", pr))
    assert hooks.call("outer", A) == 3


def test_the_settings_name_the_database_unless_told_otherwise(
    database_url: str, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    monkeypatch.setenv("FC_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with HookRegistry() as hooks:
        hooks.register("summarize", Counted())
        assert hooks.call("summarize", A) == "short"


def test_another_function_of_the_same_name_is_refused(hooks: HookRegistry) -> None:
    def made(result: str) -> Callable[[PR], str]:
        def summarize(pr: PR) -> str:
            return result

        return summarize

    def summarize(pr: PR) -> str:
        return "of another"

    hooks.cached(made("old"))
    with pytest.raises(ConfigurationError, match=r"the hook 'summarize' is .*made.*another name"):
        hooks.cached(summarize)
    with pytest.raises(ConfigurationError, match="Register it under another name"):
        hooks.register("summarize", Counted())
    # as a cell of a notebook that is run again
    assert hooks.cached(made("new"))(A) == "new"


def test_a_decorated_function_has_a_version(hooks: HookRegistry) -> None:
    def made(result: str) -> Callable[[PR], str]:
        def summarize(pr: PR) -> str:
            return result

        return summarize

    assert hooks.cached(made("old"))(A) == "old"
    assert hooks.cached(made("new"))(A) == "old"
    assert hooks.cached(version="2")(made("new"))(A) == "new"
