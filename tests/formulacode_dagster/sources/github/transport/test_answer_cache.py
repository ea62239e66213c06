"""Asking for what changed only, over HTTP."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path

import httpx
import pytest

from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.cancellation.clock import Clock
from formulacode_dagster.sources.github.transport.answer_cache import AnswerCache, CachedAnswer
from formulacode_dagster.sources.github.transport.client import GitHubTransport
from sandbox.github import Account
from tests.support.github import CALM, TOKEN

ENGINE = "/repos/ada/engine"


@pytest.fixture
def served(world):
    world.merge("ada/engine", [])
    return world


def visit(url: str, home: Path, *paths: str, tokens=(TOKEN,), **more):
    """Responses to *paths* by a separate client, the client, and its troubles."""
    troubles: list[str] = []

    async def inside():
        client = GitHubTransport(url, tokens, home=home, pacing=CALM, on_trouble=troubles.append, **more)
        async with client:
            return [await client.rest(path) for path in paths], client

    answers, client = asyncio.run(inside())
    return answers, client, troubles


def test_what_is_unchanged_costs_nothing_and_is_counted(served, tmp_path):
    with served.serve() as url:
        first, _, _ = visit(url, tmp_path, ENGINE)
        again, client, troubles = visit(url, tmp_path, ENGINE, ENGINE)
    assert again == first * 2
    assert served.books["points"] == {"core": 1}
    assert served.books["not_modified"] == 2
    (row,) = client.usage(run_id="r", stage=Stage.REPOSITORIES, month="2026-02")
    assert (row.requests, row.points, row.unchanged, row.resource) == (2, 0, 2, "core")
    assert troubles == []


def test_what_changed_is_taken_anew(served, tmp_path):
    answers = iter([('"1"', {"stars": 1}), ('"2"', {"stars": 2})])

    def changing(request: httpx.Request) -> httpx.Response:
        etag, body = next(answers)
        assert request.headers.get("if-none-match") != etag
        return httpx.Response(200, json=body, headers={"etag": etag})

    found, _, _ = visit("https://api.test", tmp_path, ENGINE, ENGINE, transport=httpx.MockTransport(changing))
    assert [answer.data["stars"] for answer in found] == [1, 2]


def test_redirects_and_further_pages_are_the_same_when_unchanged(served, tmp_path):
    served.facts["ada/engine"] = {"former_names": ["ada/motor"]}
    pages = "/repos/ada/engine/issues"

    def paged(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/repos/ada/motor":
            return httpx.Response(301, headers={"location": f"https://api.test{ENGINE}"}, json={})
        headers = {"etag": '"1"', "link": f'<https://api.test{pages}?page=2>; rel="next"'}
        if request.headers.get("if-none-match") == '"1"':
            return httpx.Response(304, headers={"etag": '"1"'})
        return httpx.Response(200, json=[], headers=headers)

    transport = httpx.MockTransport(paged)
    first, _, _ = visit("https://api.test", tmp_path, pages, "/repos/ada/motor", transport=transport)
    again, client, _ = visit("https://api.test", tmp_path, pages, "/repos/ada/motor", transport=transport)
    assert again == first
    assert again[0].next_page == f"https://api.test{pages}?page=2"
    assert again[1].moved_to == f"https://api.test{ENGINE}"
    assert sum(tally.unchanged for tally in client.totals.tallies.values()) == 2


def test_tokens_with_other_rights_do_not_see_each_other_s_answers(served, tmp_path):
    served.facts["ada/engine"] = {"is_private": True}
    tokens = {"sees": Account(login="ada"), "sees-not": Account(login="bob", scopes=())}
    with served.serve(tokens=tokens) as url:
        seen, _, _ = visit(url, tmp_path, ENGINE, tokens=["sees"])
        assert seen[0].data["private"]
        with pytest.raises(Exception, match="404 Not Found"):
            visit(url, tmp_path, ENGINE, tokens=["sees-not"])


def test_of_two_tokens_the_one_that_asked_before_asks_again(served, tmp_path):
    with served.serve() as url:
        for _ in range(3):
            visit(url, tmp_path, ENGINE, tokens=["one", "two"])
    assert (served.books["points"], served.books["not_modified"]) == ({"core": 1}, 2)


def test_an_anonymous_caller_pays_for_everything_so_nothing_is_kept(served, tmp_path):
    with served.serve() as url:
        visit(url, tmp_path, ENGINE, ENGINE, tokens=[])
    assert served.books["points"] == {"core": 2}
    assert not (tmp_path / "cache").exists()


def test_an_answer_of_another_media_type_is_another_answer(tmp_path):
    def answer(request: httpx.Request) -> httpx.Response:
        wants = request.headers["accept"]
        assert request.headers.get("if-none-match") in (None, f'"{wants}"')
        if "if-none-match" in request.headers:
            return httpx.Response(304)
        return httpx.Response(200, text="diff" if "diff" in wants else "{}", headers={"etag": f'"{wants}"'})

    async def inside():
        transport = httpx.MockTransport(answer)
        async with GitHubTransport(
            "https://api.test", [TOKEN], home=tmp_path, pacing=CALM, transport=transport
        ) as client:
            return [
                (await client.rest(ENGINE, accept=accept)).data
                for accept in ("application/vnd.github+json", "application/vnd.github.diff") * 2
            ]

    assert asyncio.run(inside()) == [{}, "diff"] * 2


def test_the_cache_is_private_and_holds_no_token(served, tmp_path):
    with served.serve() as url:
        visit(url, tmp_path, ENGINE)
    for path in (tmp_path / "cache").iterdir():
        assert path.stat().st_mode & 0o077 == 0
        assert TOKEN.encode() not in path.read_bytes()


def damage_header(path: Path) -> None:
    path.write_bytes(b"no database at all" * 1_000)


def damage_pages(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:4_096] + b"\xff" * (len(content) - 4_096))


def damage_bodies(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE answers SET body = x'00'")
    connection.close()


def damage_schema(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("ALTER TABLE answers DROP COLUMN link")
    connection.close()


@pytest.mark.parametrize("damage", [damage_header, damage_pages, damage_bodies, damage_schema])
def test_a_damaged_cache_is_begun_anew_and_said_once(served, tmp_path, damage):
    with served.serve() as url:
        first, _, _ = visit(url, tmp_path, ENGINE)
        damage(tmp_path / "cache" / "github.sqlite")
        answers, _, troubles = visit(url, tmp_path, ENGINE, ENGINE)
        assert answers == first * 2
        assert len(troubles) == 1
        assert "started from scratch" in troubles[0]
        assert visit(url, tmp_path, ENGINE)[2] == []
    assert served.books["not_modified"] == 2


def test_a_cache_that_cannot_be_written_is_done_without_and_said_once(served, tmp_path):
    (tmp_path / "cache").write_text("no folder")
    with served.serve() as url:
        answers, _, troubles = visit(url, tmp_path, ENGINE, ENGINE)
    assert answers[0] == answers[1]
    assert len(troubles) == 1
    assert "all GitHub requests are repeated" in troubles[0]


def test_the_least_recently_used_go_when_it_grows_too_large(tmp_path):
    path = tmp_path / "cache.sqlite"
    text = json.dumps([index * 7919 % 10_007 for index in range(3_000)])

    async def fill() -> list[bool]:
        cache = AnswerCache(path, pytest.fail, largest=60_000)
        for number in range(30):
            await cache.keep(f"u{number}", "json", [CachedAnswer(token="t", etag=f'"{number}"', status=200, text=text)])
            await cache.keep("u0", "json", [])
        await cache.close()
        cache = AnswerCache(path, pytest.fail, largest=60_000)
        await cache.keep("last", "json", [CachedAnswer(token="t", etag='"x"', status=200, text=text)])
        kept = [bool(await cache.find(f"u{number}", "json")) for number in range(30)]
        await cache.close()
        return kept

    kept = asyncio.run(fill())
    assert kept[0]
    assert kept[29]
    assert not any(kept[1:20])
    with sqlite3.connect(path) as connection:
        (size,) = connection.execute("SELECT sum(size) FROM answers").fetchone()
    connection.close()
    assert 0 < size <= 60_000


def test_a_truncated_answer_is_not_kept(tmp_path):
    answers = iter([httpx.Response(200, text='{"a"', headers={"etag": '"1"'}), httpx.Response(200, json={"a": 1})])

    def answer(request: httpx.Request) -> httpx.Response:
        assert "if-none-match" not in request.headers
        return next(answers)

    class Instant(Clock):
        def time(self) -> float:
            return 0.0

        async def sleep(self, seconds: float) -> None:
            return None

    found, _, _ = visit("https://api.test", tmp_path, ENGINE, transport=httpx.MockTransport(answer), clock=Instant())
    assert found[0].data == {"a": 1}
