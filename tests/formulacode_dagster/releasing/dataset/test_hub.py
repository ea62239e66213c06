from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from huggingface_hub import HfApi
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.release import TaskRecord
from formulacode_dagster.releasing.dataset.hub import HubDestination
from formulacode_dagster.releasing.dataset.hub_client import ATTEMPTS
from formulacode_dagster.releasing.dataset.tables import MonthTables
from sandbox.hub import app
from sandbox.server import serving
from tests.support.release import tables_of

MakeRecord = Callable[..., TaskRecord]
FEBRUARY, JANUARY = Month.parse("2026-02"), Month.parse("2026-01")
TOKEN = "hf_tOkEnOfTheTest"
NAME = "acme/tasks"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    folder = tmp_path_factory.mktemp("hub")
    with serving(app(folder, tokens=frozenset({TOKEN}))) as url:
        yield url, folder


@pytest.fixture
def url(served: tuple[str, Path]) -> str:
    return served[0]


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    return f"acme/{request.node.name[:80].strip('_')}"


@pytest.fixture
def destination(url: str, name: str) -> HubDestination:
    return HubDestination(name, url, TOKEN)


class KilledError(BaseException):
    """State that survives a `kill -9`."""


def _kill_before_tag(destination: HubDestination, tables: MonthTables, monkeypatch: pytest.MonkeyPatch) -> None:
    def die(*_: object, **__: object) -> None:
        raise KilledError

    with monkeypatch.context() as patch:
        patch.setattr(HfApi, "create_tag", die)
        with pytest.raises(KilledError):
            destination.release(FEBRUARY, tables)


def _writes(url: str) -> int:
    by_method = httpx.get(f"{url}/_sandbox/calls").json()["by_method"]
    return int(sum(by_method.get(method, 0) for method in ("POST", "PUT", "DELETE")))


def test_a_month_is_committed_tagged_and_read_back(
    destination: HubDestination, url: str, name: str, record: MakeRecord
) -> None:
    found = destination.release(FEBRUARY, tables_of([record(1), record(2)]))
    assert found.destination == destination.name == f"hub:{name}"
    assert found.tag == "formulacode@2026-03"
    assert found.read_back_sha256 == found.rows_sha256
    assert destination.tags() == {"formulacode@2026-03": found.revision}
    api = HfApi(endpoint=url, token=TOKEN)
    files = api.list_repo_files(name, repo_type="dataset", revision=found.tag)
    assert {"README.md", "months.json", "data/2026-02.parquet", "verified/2026-02.parquet"} <= set(files)


@pytest.mark.slow
def test_the_same_month_again_uploads_nothing(destination: HubDestination, url: str, record: MakeRecord) -> None:
    first = destination.release(FEBRUARY, tables_of([record(1), record(2)]))
    destination.release(JANUARY, tables_of([]))
    before = _writes(url)
    assert destination.release(FEBRUARY, tables_of([record(2), record(1)])) == first
    assert _writes(url) == before


@pytest.mark.slow
def test_a_released_tag_is_never_changed(destination: HubDestination, url: str, record: MakeRecord) -> None:
    destination.release(FEBRUARY, tables_of([record(1)]))
    before, tags = _writes(url), destination.tags()
    with pytest.raises(ItemFailure, match="a released tag is never changed") as caught:
        destination.release(FEBRUARY, tables_of([record(1), record(3)]))
    assert caught.value.kind == "released_tag"
    assert "1 new: acme__fast-3" in str(caught.value)
    assert (_writes(url), destination.tags()) == (before, tags)


@pytest.mark.slow
def test_every_month_is_on_the_card(destination: HubDestination, url: str, name: str, record: MakeRecord) -> None:
    destination.release(FEBRUARY, tables_of([record(1)]))
    destination.release(JANUARY, tables_of([]))
    card = httpx.get(f"{url}/datasets/{name}/resolve/main/README.md", headers={"Authorization": f"Bearer {TOKEN}"}).text
    assert 'config_name: "2026-01"' in card
    assert 'config_name: "2026-02"' in card


@pytest.mark.slow
def test_a_run_killed_between_commit_and_tag_is_finished_by_the_next_one(
    destination: HubDestination, url: str, name: str, record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = tables_of([record(1)])
    _kill_before_tag(destination, tables, monkeypatch)
    assert destination.tags() == {}
    head = HfApi(endpoint=url, token=TOKEN).dataset_info(name).sha
    found = destination.release(FEBRUARY, tables)
    assert found.revision == head
    assert destination.tags() == {found.tag: head}


@pytest.mark.slow
def test_what_was_committed_and_never_tagged_may_still_change(
    destination: HubDestination, record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    _kill_before_tag(destination, tables_of([record(1)]), monkeypatch)
    found = destination.release(FEBRUARY, tables_of([record(2)]))
    assert found.task_ids == ("acme__fast-2",)
    assert found.read_back_sha256 == found.rows_sha256


@pytest.mark.slow
def test_a_month_committed_by_another_run_meanwhile_is_kept(
    destination: HubDestination, url: str, name: str, record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = HubDestination(name, url, TOKEN)
    destination.release(Month.parse("2025-12"), tables_of([]))
    committing, raced = HfApi.create_commit, []

    def race(api: HfApi, *arguments: object, **options: object) -> object:
        if not raced:
            raced.append(True)
            other.release(JANUARY, tables_of([]))
        return committing(api, *arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(HfApi, "create_commit", race)
    destination.release(FEBRUARY, tables_of([record(1)]))
    files = HfApi(endpoint=url, token=TOKEN).list_repo_files(name, repo_type="dataset")
    assert {"data/2025-12.parquet", "data/2026-01.parquet", "data/2026-02.parquet"} <= set(files)


@pytest.mark.slow
def test_the_hub_keeps_releases_over_a_restart(tmp_path: Path, record: MakeRecord) -> None:
    tables = tables_of([record(1)])
    with serving(app(tmp_path)) as url:
        first = HubDestination(NAME, url, TOKEN).release(FEBRUARY, tables)
    with serving(app(tmp_path)) as url:
        assert HubDestination(NAME, url, TOKEN).release(FEBRUARY, tables) == first


def test_a_wrong_token_is_named_and_not_shown(url: str) -> None:
    with pytest.raises(ConfigurationError, match="HF_TOKEN") as caught:
        HubDestination(NAME, url, "hf_wrong").release(FEBRUARY, tables_of([]))
    assert "hf_wrong" not in str(caught.value)


def test_a_missing_token_is_named(url: str) -> None:
    with pytest.raises(ConfigurationError, match="HF_TOKEN"):
        HubDestination(NAME, url, "").release(FEBRUARY, tables_of([]))


def test_a_malformed_name_is_named(url: str) -> None:
    with pytest.raises(ConfigurationError, match="HF_DATASET"):
        HubDestination("not//a name", url, TOKEN).release(FEBRUARY, tables_of([]))


@pytest.mark.parametrize("attempt", ["release", "tags"])
def test_a_dead_hub_stops_the_stage(attempt: str) -> None:
    destination = HubDestination(NAME, "http://127.0.0.1:9", TOKEN)
    with pytest.raises(OutsideSystemError, match="HF_ENDPOINT") as caught:
        destination.tags() if attempt == "tags" else destination.release(FEBRUARY, tables_of([]))
    assert caught.value.system == "hub"
    assert TOKEN not in str(caught.value)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_hub_that_cannot_serve_stops_the_stage(status: int) -> None:
    async def fail(request: Request) -> PlainTextResponse:
        return PlainTextResponse("not now", status_code=status)

    waited: list[float] = []
    with (
        serving(Starlette(routes=[Route("/{path:path}", fail, methods=["GET", "POST"])])) as url,
        pytest.raises(OutsideSystemError, match="hub: cannot release") as caught,
    ):
        HubDestination(NAME, url, TOKEN, sleep=waited.append).release(FEBRUARY, tables_of([]))
    assert caught.value.system == "hub"
    assert len(waited) == ATTEMPTS - 1


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("part", ["/commit/", "/tag/"])
def test_a_commit_that_meets_a_limit_or_a_fault_is_made_once(
    when: str, part: str, tmp_path: Path, record: MakeRecord
) -> None:
    """With a limit it was not made; after a fault, it may have been."""
    hub, waited, failed = app(tmp_path), [], []

    async def faulty(scope: Scope, receive: Receive, send: Send) -> None:
        if part not in scope.get("path", "") or failed:
            await hub(scope, receive, send)
            return
        failed.append(part)
        answer = PlainTextResponse("slowly", 429, {"Retry-After": "7"})
        if when == "after":
            answer = PlainTextResponse("no gateway", 502)
            await hub(scope, receive, discard)
        await answer(scope, receive, send)

    async def discard(_: object) -> None:
        """The Hub's response never came."""

    with serving(faulty) as url:
        destination = HubDestination(NAME, url, TOKEN, sleep=waited.append)
        release = destination.release(FEBRUARY, tables_of([record(1)]))
        assert destination.tags() == {"formulacode@2026-03": release.revision}
        history = HfApi(endpoint=url, token=TOKEN).list_repo_commits(NAME, repo_type="dataset")
    assert [commit.title for commit in history if "Release" in commit.title] == [
        "Release 2026-02 as formulacode@2026-03"
    ]
    assert len(waited) == 1
    assert when == "after" or waited == [7]


def test_a_token_that_may_not_write_is_told_apart_without_writing(tmp_path: Path, record: MakeRecord) -> None:
    reader = "hf_ReadOnly"
    with serving(app(tmp_path, tokens=frozenset({TOKEN, reader}), readers=frozenset({reader}))) as url:
        for made in (False, True):
            if made:
                HubDestination(NAME, url, TOKEN).release(FEBRUARY, tables_of([record(1)]))
            before = _writes(url)
            HubDestination(NAME, url, TOKEN).require_write()
            with pytest.raises(ConfigurationError, match="HF_TOKEN") as caught:
                HubDestination(NAME, url, reader).require_write()
            assert _writes(url) == before
            assert reader not in str(caught.value)
        with pytest.raises(ConfigurationError, match="HF_TOKEN"):
            HubDestination(NAME, url, reader).release(FEBRUARY.next(), tables_of([record(1)]))


def test_a_hub_that_says_nothing_is_not_waited_for_for_ever() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        destination = HubDestination(NAME, f"http://127.0.0.1:{silent.getsockname()[1]}", TOKEN, timeout=0.2)
        with pytest.raises(OutsideSystemError, match="Timeout"):
            destination.tags()


@pytest.mark.slow
def test_a_concurrent_release_with_other_rows_is_not_overwritten(
    destination: HubDestination, url: str, name: str, record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, tagging = HubDestination(name, url, TOKEN), HfApi.create_tag

    def race(api: HfApi, *arguments: object, **named: object) -> None:
        monkeypatch.setattr(HfApi, "create_tag", tagging)
        other.release(FEBRUARY, tables_of([record(5)]))
        tagging(api, *arguments, **named)

    monkeypatch.setattr(HfApi, "create_tag", race)
    with pytest.raises(ItemFailure, match="a released tag is never changed"):
        destination.release(FEBRUARY, tables_of([record(1)]))


def test_nothing_is_kept_in_the_home_folder(destination: HubDestination, record: MakeRecord) -> None:
    before = _home_files()
    destination.release(FEBRUARY, tables_of([record(1)]))
    assert _home_files() == before


def _home_files() -> set[str]:
    from huggingface_hub import constants

    return {str(path) for path in Path(constants.HF_HOME).expanduser().rglob("*")}
