"""Limits shared by processes: real ones, over real HTTP, against a GitHub whose ceilings are scaled down."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from formulacode_dagster.operating.cancellation.clock import Clock
from formulacode_dagster.sources.github.transport.answers import Resource
from formulacode_dagster.sources.github.transport.client import GitHubTransport
from formulacode_dagster.sources.github.transport.limit_store import FileLimitStore
from formulacode_dagster.sources.github.transport.pacing import Lane, Pacing
from formulacode_dagster.sources.github.transport.rate_limits import RateLimits
from sandbox.github import Fault, Faults, Limits, ScriptedFault
from tests.support.clock import FakeClock, at_most_cpu
from tests.support.github import TOKEN, UNLIMITED

PACING = Pacing(concurrent=4, rest_points=1_800, burst_seconds=0.3)
CEILING = Limits(concurrent=4, rest_points=75, secondary_seconds=2, retry_after_seconds=1)
"""Limit in any 2 s: 60 at that pace, 9 at once, 4 that were in progress."""

ASKS = """
import asyncio, sys
from pathlib import Path
from formulacode_dagster.sources.github.transport.client import GitHubTransport
from formulacode_dagster.sources.github.transport.pacing import Pacing

url, home, calls, concurrent, burst = sys.argv[1:]

async def main():
    pacing = Pacing(concurrent=int(concurrent), rest_points=1_800, burst_seconds=float(burst))
    async with GitHubTransport(url, ["the-same-token"], home=Path(home), pacing=pacing) as client:
        print("begun", flush=True)
        await asyncio.gather(*(client.rest("/repos/ada/engine", {"n": n}) for n in range(int(calls))))
        print(client.totals.limit_hits, flush=True)

asyncio.run(main())
"""


def start(url: str, home: Path, calls: int, pacing: Pacing = PACING) -> subprocess.Popen[str]:
    arguments = [url, str(home), str(calls), str(pacing.concurrent), str(pacing.burst_seconds)]
    return subprocess.Popen([sys.executable, "-c", ASKS, *arguments], stdout=subprocess.PIPE, text=True)


@pytest.fixture
def served(world):
    world.merge("ada/engine", [])
    return world


@pytest.mark.slow
@pytest.mark.parametrize("shared", [True, False])
def test_two_processes_stay_below_the_ceiling_together_and_only_together(served, tmp_path, shared):
    homes = [tmp_path / ("home" if shared else f"home{number}") for number in range(2)]
    with served.serve(limits=CEILING) as url:
        running = [start(url, home, 50) for home in homes]
        said = [process.communicate(timeout=60)[0].split() for process in running]
    hits = served.books["limit_hits"]
    if shared:
        assert (hits, said) == ({}, [["begun", "0"]] * 2)
        assert served.books["total"] == 100
    else:
        assert hits


@pytest.mark.slow
def test_a_killed_process_holds_its_slots_no_longer(served, tmp_path):
    hanging = Faults(scripted=(ScriptedFault(call=1, times=2, fault=Fault.HANG),), hang_seconds=200)
    pacing = Pacing(concurrent=2)
    with served.serve(faults=hanging) as url:
        first = start(url, tmp_path, 2, pacing)
        limits = tmp_path / "github" / "limits.json"
        while not limits.exists() or sum(under_way(limits)) < 2:
            time.sleep(0.02)
        second = start(url, tmp_path, 3, pacing)
        assert second.stdout.readline() == "begun\n"
        time.sleep(0.5)
        assert second.poll() is None
        first.send_signal(signal.SIGKILL)
        # long before what hangs would have ended
        assert second.communicate(timeout=100)[0] == "0\n"
        first.communicate()
    assert under_way(limits) == []
    assert list((tmp_path / "github" / "holders").iterdir()) == []


def under_way(path: Path) -> list[int]:
    (api,) = json.loads(path.read_text())["apis"].values()
    return list(api["under_way"].values())


def asked(home: Path, url: str, calls: int, **more) -> tuple[GitHubTransport, list[str]]:
    troubles: list[str] = []

    async def inside() -> GitHubTransport:
        async with GitHubTransport(url, [TOKEN], home=home, on_trouble=troubles.append, **more) as client:
            await asyncio.gather(*(client.rest("/repos/ada/engine", {"n": n}) for n in range(calls)))
            return client

    return asyncio.run(inside()), troubles


def test_limits_are_shared_between_clients_without_tokens_in_the_file(served, tmp_path):
    with served.serve(limits=Limits(core=3)) as url:
        asked(tmp_path, url, 3)
        document = tmp_path / "github" / "limits.json"
        text = document.read_text()
        books = FileLimitStore(tmp_path / "github", url, Clock(), pytest.fail)
        limits = asyncio.run(read(books))
    assert TOKEN not in text
    assert limits.user(TOKEN).budget(Resource.CORE).remaining == 0
    assert document.stat().st_mode & 0o077 == 0


async def read(books: FileLimitStore) -> RateLimits:
    try:
        return await books.update(lambda limits: limits)
    finally:
        await books.close()


@pytest.mark.parametrize("text", ["", "{", '{"apis": []}', '{"apis": {"x": {"pace": {"due": {"rest": "soon"}}}}}'])
def test_a_damaged_file_is_begun_anew_without_a_burst(served, tmp_path, text):
    (tmp_path / "github").mkdir()
    (tmp_path / "github" / "limits.json").write_text(text)
    clock = FakeClock()
    with served.serve(limits=UNLIMITED) as url:
        _, troubles = asked(tmp_path, url, 12, clock=clock, pacing=Pacing(rest_points=60))
        assert sum(clock.slept) >= 11
        assert asked(tmp_path, url, 1, clock=clock)[1] == []
    assert len(troubles) == 1
    assert "started from scratch" in troubles[0]


def test_without_a_file_each_process_paces_itself_and_says_so_once(served, tmp_path):
    (tmp_path / "github").write_text("no folder")
    clock = FakeClock()
    with served.serve(limits=UNLIMITED) as url:
        _, troubles = asked(tmp_path, url, 12, clock=clock, pacing=Pacing(rest_points=60))
    assert sum(clock.slept) >= 11
    assert [text for text in troubles if "limits are kept only by this process" in text] == troubles[:1]


def test_a_disk_that_fills_up_on_the_way_leaves_the_pace_as_it_was(served, tmp_path, monkeypatch):
    real, writes = os.open, []

    def full(path, flags, *more, **others):
        if str(path).endswith(".partial"):
            writes.append(path)
            if len(writes) > 10:
                raise OSError(errno.ENOSPC, "No space left on device")
        return real(path, flags, *more, **others)

    monkeypatch.setattr(os, "open", full)
    clock = FakeClock()
    with served.serve(limits=UNLIMITED) as url:
        client, troubles = asked(tmp_path, url, 30, clock=clock, pacing=Pacing(rest_points=60, burst_seconds=2))
    assert client.totals.cost.api_requests == 30
    assert sum(clock.slept) >= 27
    assert sum("No space left" in text and "only by this process" in text for text in troubles) == 1


def test_an_api_that_nobody_asks_any_more_is_forgotten(tmp_path):
    clock = FakeClock()

    async def visit(url: str) -> None:
        await read(FileLimitStore(tmp_path, url, clock, pytest.fail))

    for url in ("http://127.0.0.1:1", "https://api.github.com"):
        asyncio.run(visit(url))
    assert len(json.loads((tmp_path / "limits.json").read_text())["apis"]) == 2
    clock.now += 3 * 86_400
    asyncio.run(visit("https://api.github.com"))
    assert list(json.loads((tmp_path / "limits.json").read_text())["apis"]) == ["api.github.com:"]


def test_a_transaction_is_short(tmp_path):
    async def many() -> None:
        books = FileLimitStore(tmp_path, "https://api.github.com", Clock(), pytest.fail)
        await books.update(lambda limits: limits.pace.due.setdefault(Lane.REST, 0.0))
        with at_most_cpu(2):
            for _ in range(100):
                await books.update(lambda limits: limits.pace.take(Resource.CORE, Pacing(), 0.0))
        await books.close()

    asyncio.run(many())
