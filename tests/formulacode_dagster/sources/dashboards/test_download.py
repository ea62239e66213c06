"""A site over HTTP: rate limited, downloaded completely, and continued after any failure."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx
import pytest

from formulacode_dagster.sources.dashboards.download import Download, download
from formulacode_dagster.sources.dashboards.faults import DashboardError, FaultKind
from formulacode_dagster.sources.dashboards.server import AGENT, ATTEMPTS, PACE, Server
from formulacode_dagster.sources.dashboards.site import read_site
from tests.support.asv_site import GRAPHS, MEMORY, PLAIN, site_content
from tests.support.clock import FakeClock

GRAPH = f"{GRAPHS}/{PLAIN}.json"


class Site(httpx.AsyncBaseTransport):
    """A static file server with ETags; `answers` are what it says instead, by path, one after the other."""

    def __init__(self) -> None:
        self.files = {path: json.dumps(content).encode() for path, content in site_content().items()}
        self.answers: dict[str, list[httpx.Response | Exception]] = {}
        self.asked: Counter[str] = Counter()
        self.agents: set[str] = set()
        self.after: Callable[[str], None] = lambda _path: None
        self.open = self.most_open = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.open += 1
        self.most_open = max(self.open, self.most_open)
        try:
            # as long as others may come, were there any
            for _ in range(20):
                await asyncio.sleep(0)
            return self._answer(request)
        finally:
            self.open -= 1

    def _answer(self, request: httpx.Request) -> httpx.Response:
        path = unquote(request.url.raw_path.decode()).removeprefix("/bench/").removeprefix("/")
        self.asked[path] += 1
        self.agents.add(request.headers["user-agent"])
        if self.answers.get(path):
            answer = self.answers[path].pop(0)
            if isinstance(answer, Exception):
                raise answer
            return answer
        content = self.files.get(path)
        self.after(path)
        if content is None:
            return httpx.Response(404, text="<html>no such page</html>")
        etag = f'"{hash(content)}"'
        if request.headers.get("if-none-match") == etag:
            return httpx.Response(304, headers={"etag": etag})
        return httpx.Response(200, content=content, headers={"etag": etag})


def fetch(site: Site, folder: Path, clock: FakeClock | None = None, at_once: int = 2) -> Download:
    async def run() -> Download:
        async with Server("http://site.test/bench/#/", clock=clock or FakeClock(), transport=site) as server:
            return await download(server, folder, at_once=at_once)

    return asyncio.run(run())


def test_what_is_laid_down_is_the_site(tmp_path: Path) -> None:
    site = Site()
    result = fetch(site, tmp_path)
    assert (result.fetched, result.absent, result.faults) == (8, 0, ())
    assert {path: (tmp_path / path).read_bytes() for path in site.files} == site.files
    assert site.agents == {AGENT}
    assert read_site(tmp_path).graphs_read == 3


def test_what_has_not_changed_is_not_fetched_again(tmp_path: Path) -> None:
    site = Site()
    fetch(site, tmp_path)
    site.asked.clear()
    assert fetch(site, tmp_path).kept == 8
    assert set(site.asked) == {"robots.txt", "index.json"}


def test_a_site_that_was_published_anew_is_asked_for_what_changed(tmp_path: Path) -> None:
    site = Site()
    fetch(site, tmp_path)
    site.files["index.json"] += b" "
    site.files[GRAPH] = b"[[100, 9.0]]"
    del site.files[f"{GRAPHS}/{MEMORY}.json"]
    result = fetch(site, tmp_path)
    assert (result.fetched, result.unchanged, result.absent) == (1, 6, 1)
    assert read_site(tmp_path).points.filter(series=0)["value"].to_list() == [9.0]
    assert not (tmp_path / GRAPHS / f"{MEMORY}.json").exists()


def test_a_site_changing_during_the_read_is_rejected_then_completed(tmp_path: Path) -> None:
    site = Site()

    def publish(path: str) -> None:
        if path == GRAPH:
            site.files["index.json"] = site.files["index.json"].replace(b"sample", b"newer!")

    site.after = publish
    with pytest.raises(DashboardError) as raised:
        fetch(site, tmp_path)
    assert raised.value.fault.kind is FaultKind.CHANGED
    assert not (tmp_path / "index.json").exists(), "nobody takes the half of it for a site"
    assert fetch(site, tmp_path).unchanged == 8
    assert read_site(tmp_path).project == "newer!"


def test_who_is_asked_to_wait_waits(tmp_path: Path) -> None:
    site, clock = Site(), FakeClock()
    site.answers[GRAPH] = [httpx.Response(429, headers={"retry-after": "30"}), httpx.Response(503)]
    begun = clock.now
    result = fetch(site, tmp_path, clock)
    assert (result.fetched, result.faults) == (8, ())
    assert clock.now - begun >= 30
    assert site.asked[GRAPH] == 3


@pytest.mark.parametrize("at_once", [1, 3])
def test_no_more_requests_are_open_than_are_allowed(at_once: int, tmp_path: Path) -> None:
    site = Site()
    fetch(site, tmp_path, at_once=at_once)
    assert site.most_open == at_once


def test_requests_keep_the_pace_that_robots_ask_for(tmp_path: Path) -> None:
    site, clock = Site(), FakeClock()
    begun = clock.now
    fetch(site, tmp_path, clock)
    requests = sum(site.asked.values())
    assert clock.now - begun >= (requests - 2) * PACE
    site.files["robots.txt"] = b"User-agent: *\nCrawl-delay: 2\n"
    begun = clock.now
    fetch(site, tmp_path / "again", clock)
    assert clock.now - begun >= (requests - 2) * 2


def test_what_robots_forbid_is_not_asked_for(tmp_path: Path) -> None:
    site = Site()
    site.files["robots.txt"] = f"User-agent: {AGENT}\nDisallow: /bench/graphs/summary/\n".encode()
    result = fetch(site, tmp_path)
    assert {fault.kind for fault in result.faults} == {FaultKind.FORBIDDEN}
    assert len(result.faults) == 3
    assert not any(path.startswith("graphs/summary") for path in site.asked)
    site.files["robots.txt"] = b"User-agent: *\nDisallow: /\n"
    with pytest.raises(DashboardError, match=r"robots\.txt"):
        fetch(site, tmp_path)


@pytest.mark.parametrize(
    "answer",
    [
        lambda: httpx.Response(500),
        lambda: httpx.ReadError("reset"),
        lambda: httpx.RemoteProtocolError("peer closed connection without sending complete message body"),
    ],
)
def test_an_unavailable_file_is_named_and_fetched_by_the_next_run(answer: Any, tmp_path: Path) -> None:
    site = Site()
    site.answers[GRAPH] = [answer() for _ in range(ATTEMPTS)]
    (fault,) = fetch(site, tmp_path).faults
    assert (fault.path, fault.kind) == (GRAPH, FaultKind.NOT_FETCHED)
    assert read_site(tmp_path).graphs_read == 2
    site.asked.clear()
    result = fetch(site, tmp_path)
    assert (result.fetched, result.kept) == (1, 7)
    assert read_site(tmp_path).graphs_read == 3


def test_a_wait_beyond_patience_is_not_waited(tmp_path: Path) -> None:
    site, clock = Site(), FakeClock()
    site.answers[GRAPH] = [httpx.Response(503, headers={"retry-after": "86400"})]
    begun = clock.now
    (fault,) = fetch(site, tmp_path, clock).faults
    assert "86400 s" in fault.detail
    assert clock.now - begun < 60


def test_a_dead_site_stops_and_the_next_run_goes_on(tmp_path: Path) -> None:
    site = Site()
    paths = [path for path in site.files if path.startswith("graphs/")]
    site.answers = {path: [httpx.Response(503) for _ in range(ATTEMPTS)] for path in paths}
    with pytest.raises(DashboardError) as raised:
        # one after the other: what is on its way when the site is given up is fetched again
        fetch(site, tmp_path, at_once=1)
    assert raised.value.fault.kind is FaultKind.NOT_FETCHED
    assert (tmp_path / "info.json").exists()
    site.answers.clear()
    site.asked.clear()
    assert fetch(site, tmp_path).fetched == 6
    assert not site.asked["info.json"]


def test_a_record_that_broke_off_costs_one_file(tmp_path: Path) -> None:
    site = Site()
    fetch(site, tmp_path)
    record = tmp_path / ".fetched.jsonl"
    record.write_bytes(record.read_bytes()[:-20])
    assert fetch(site, tmp_path).kept == 7


def test_a_file_that_was_deleted_is_fetched_again(tmp_path: Path) -> None:
    site = Site()
    fetch(site, tmp_path)
    (tmp_path / GRAPH).unlink()
    result = fetch(site, tmp_path)
    assert (result.fetched, result.kept) == (1, 7)


@pytest.mark.parametrize(
    ("content", "kind"), [(b"<html>", FaultKind.HTML), (b'{"a":', FaultKind.TRUNCATED), (None, FaultKind.ABSENT)]
)
def test_an_address_without_a_site_says_so(content: bytes | None, kind: FaultKind, tmp_path: Path) -> None:
    site = Site()
    if content is None:
        del site.files["index.json"]
    else:
        site.files["index.json"] = content
    with pytest.raises(DashboardError, match="URL of an asv site") as raised:
        fetch(site, tmp_path)
    assert raised.value.fault.kind is kind


@pytest.mark.parametrize(
    "target",
    [
        "http://127.0.0.1:3000/graphql",
        "http://localhost/",
        "http://169.254.169.254/latest",
        "http://[::ffff:10.0.0.1]/",
    ],
)
def test_a_redirect_into_this_machine_is_not_followed(tmp_path: Path, target: str) -> None:
    site = Site()
    site.answers[GRAPH] = [httpx.Response(302, headers={"location": target})]
    result = fetch(site, tmp_path)
    ((fault,), (host,)) = result.faults, {httpx.URL(target).host}
    assert (fault.path, fault.kind) == (GRAPH, FaultKind.NOT_FETCHED)
    assert f"redirected to {host}, which is" in fault.detail
    # neither once nor five times
    assert set(site.asked) - {"robots.txt"} == set(site.files)


def test_a_redirect_to_a_public_address_is_followed(tmp_path: Path) -> None:
    site = Site()
    site.answers[GRAPH] = [httpx.Response(302, headers={"location": f"http://1.1.1.1/bench/{GRAPH}"})]
    assert fetch(site, tmp_path).faults == ()


def test_an_index_that_lists_millions_of_graphs_is_refused_before_the_first(tmp_path: Path) -> None:
    site = Site()
    index = site_content()["index.json"]
    benchmark = index["benchmarks"][PLAIN]
    index |= {"benchmarks": dict.fromkeys(map(str, range(4000)), benchmark), "graph_param_list": [{}] * 4000}
    site.files["index.json"] = json.dumps(index).encode()
    with pytest.raises(DashboardError, match="it lists 16,000,000 graphs") as raised:
        fetch(site, tmp_path)
    assert raised.value.fault.kind is FaultKind.TOO_LARGE
    assert set(site.asked) == {"robots.txt", "index.json"}


@pytest.mark.parametrize("name", ["b" * 300, "\0"])
def test_a_name_that_no_file_can_have_is_the_site_s_fault_and_not_the_disk_s(tmp_path: Path, name: str) -> None:
    site = Site()
    index = site_content()["index.json"]
    # asv wrote slashes of an environment as folders once, and whatever else
    index["graph_param_list"].append({"machine": f"a/{name}"})
    site.files["index.json"] = json.dumps(index).encode()
    result = fetch(site, tmp_path)
    assert len(result.faults) == 3
    assert {fault.kind for fault in result.faults} <= {FaultKind.TOO_LARGE, FaultKind.UNREADABLE}
    assert read_site(tmp_path, result.faults).graphs_read == 3
