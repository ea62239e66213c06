from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Literal

import pytest
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Scope

from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.releasing.registries.accounts import STRANGER, Account
from formulacode_dagster.releasing.registries.client import ATTEMPTS, RegistryClient, base_url
from formulacode_dagster.releasing.registries.manifests import digest_of
from formulacode_dagster.releasing.registries.publishing import Registry
from sandbox.registry import app
from sandbox.server import serving
from tests.support.registries import (
    PASSWORD,
    USER,
    Trouble,
    Waits,
    basic,
    guarded,
    header_of,
    image_of,
    in_front,
    refusal,
    with_tokens,
)

OURS = Account(USER, PASSWORD)
Mode = Literal["single", "mirror"]
Open = Callable[..., AbstractContextManager[RegistryClient]]


@pytest.fixture
def registry(tmp_path: Path) -> ASGIApp:
    return app(tmp_path)


@contextmanager
def reading(served: ASGIApp, account: Account = STRANGER, waits: Waits | None = None) -> Iterator[RegistryClient]:
    with serving(served) as url, closing(RegistryClient(url, account, (waits or Waits()).limits)) as client:
        yield client


@pytest.mark.parametrize(
    ("setting", "asked"),
    [
        ("docker.io", "https://registry-1.docker.io"),
        ("ghcr.io", "https://ghcr.io"),
        ("127.0.0.1:5000", "http://127.0.0.1:5000"),
        ("https://127.0.0.1:5443/", "https://127.0.0.1:5443"),
    ],
)
def test_a_registry_is_asked_over_tls_unless_it_is_of_this_machine(setting: str, asked: str) -> None:
    assert base_url(setting) == asked


def test_a_blob_is_pushed_once_by_an_account_with_a_token(registry: ASGIApp) -> None:
    seen: list[str] = []
    noted = in_front(registry, lambda scope: seen.append(f"{scope['method']} {scope['path']}"))
    with reading(with_tokens(noted, is_public=True), OURS) as client:
        blob = client.put_blob("acme/tasks", b"content", "text/plain")
        assert client.put_blob("acme/tasks", b"content", "text/plain") == blob
        with client.blob("acme/tasks", blob.digest) as parts:
            assert b"".join(parts) == b"content"
    assert [line for line in seen if line.startswith("PUT")] == [seen[2]]


@pytest.mark.parametrize("account", [STRANGER, Account(USER, "wrong")])
def test_an_account_that_may_not_is_told_which_settings(registry: ASGIApp, account: Account) -> None:
    with (
        reading(with_tokens(registry, is_public=True), account) as client,
        pytest.raises(ConfigurationError, match="DOCKERHUB_TOKEN"),
    ):
        client.put_blob("acme/tasks", b"content", "text/plain")


@pytest.mark.parametrize("mode", ["single", "mirror"])
def test_an_account_that_may_push_leaves_nothing_behind(registry: ASGIApp, mode: Mode, tmp_path: Path) -> None:
    with serving(with_tokens(registry, is_public=True)) as url:
        Registry(url, "acme", OURS, mode, Waits().limits).require_write()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("mode", ["single", "mirror"])
def test_an_account_with_a_wrong_password_may_not_write(registry: ASGIApp, mode: Mode) -> None:
    for served in (with_tokens(registry, is_public=True), guarded(registry)):
        with serving(served) as url, pytest.raises(ConfigurationError, match="DOCKERHUB_TOKEN"):
            Registry(url, "acme", Account(USER, "wrong"), mode, Waits().limits).require_write()


def test_a_public_repository_of_others_may_not_be_written(registry: ASGIApp) -> None:
    with (
        serving(with_tokens(registry, is_public=True)) as url,
        pytest.raises(ConfigurationError, match=r"refuses to let us push to acme/formulacode.*DOCKERHUB_TOKEN"),
    ):
        Registry(url, "acme", STRANGER, "single", Waits().limits).require_write()


def test_docker_hub_needs_an_account() -> None:
    with pytest.raises(ConfigurationError, match="DOCKERHUB_USERNAME"):
        Registry("docker.io", "acme", STRANGER, "single").require_write()


@pytest.mark.parametrize(
    "page", [Response(b"<html>"), JSONResponse([]), Response(b"", 502)], ids=["page", "list", "502"]
)
def test_a_token_that_a_proxy_s_page_takes_the_place_of_is_asked_for_again(registry: ASGIApp, page: Response) -> None:
    served = in_front(with_tokens(registry, is_public=True), Trouble("GET", "/token", page))
    with reading(served, OURS) as client:
        assert client.put_blob("acme/tasks", b"content", "text/plain").size == 7
    never = in_front(with_tokens(registry, is_public=True), Trouble("GET", "/token", page, times=99))
    with reading(never, OURS) as client, pytest.raises(OutsideSystemError, match="push"):
        client.put_blob("acme/tasks", b"content", "text/plain")


def as_ghcr(registry: ASGIApp) -> ASGIApp:
    """*registry* as GitHub's answers of a private package: strangers get no token, not even one without rights."""

    def answer(scope: Scope) -> Response | None:
        if scope["path"] == "/token":
            owner = header_of(scope, "authorization") == basic()
            return JSONResponse({"token": "of-the-owner"}) if owner else refusal(403, "DENIED")
        if header_of(scope, "authorization") == "Bearer of-the-owner":
            return None
        challenge = (
            f'Bearer realm="http://{header_of(scope, "host")}/token",service="ghcr.io",scope="repository:a/b:pull"'
        )
        return refusal(401, "UNAUTHORIZED", WWW_Authenticate=challenge)

    return in_front(registry, answer)


def test_a_new_github_package_is_pushed_and_hidden_from_strangers(registry: ASGIApp) -> None:
    served = as_ghcr(registry)
    with reading(served, OURS) as client:
        assert client.manifest("acme/tasks", "5-1", push=True) is None
        config = client.put_blob("acme/tasks", b"{}", "application/json")
        client.put_manifest("acme/tasks", "5-1", image_of(config))
        assert client.may_read("acme/tasks", "5-1")
    with reading(served) as stranger:
        assert not stranger.may_read("acme/tasks", "5-1")
    with reading(served, Account(USER, "another")) as other, pytest.raises(ConfigurationError, match="DOCKERHUB_TOKEN"):
        other.manifest("acme/tasks", "5-1")


def test_credentials_do_not_follow_a_redirect_to_another_host(registry: ASGIApp) -> None:
    seen: list[str] = []

    def storage(scope: Scope) -> Response:
        seen.append(header_of(scope, "authorization"))
        return Response(b"content")

    with serving(in_front(registry, storage)) as elsewhere:

        def redirect(scope: Scope) -> Response | None:
            return RedirectResponse(f"{elsewhere}/here") if "/blobs/sha256" in scope["path"] else None

        served = with_tokens(in_front(registry, redirect), is_public=False)
        with reading(served, OURS) as client, client.blob("acme/tasks", digest_of(b"content")) as parts:
            assert b"".join(parts) == b"content"
    assert seen == [""]


def test_what_passes_is_tried_again_and_what_stays_is_dead(registry: ASGIApp) -> None:
    trouble, waits = Trouble("GET", "/manifests/", refusal(503, "UNAVAILABLE"), times=2), Waits()
    with reading(in_front(registry, trouble), waits=waits) as client:
        assert client.manifest("acme/tasks", "v1") is None
        assert len(waits.seconds) == 2
        trouble.times = ATTEMPTS
        with pytest.raises(OutsideSystemError, match="503"):
            client.manifest("acme/tasks", "v1")


def test_a_limit_that_lasts_longer_than_a_window_ends_the_stage(registry: ASGIApp) -> None:
    trouble = Trouble("GET", "/manifests/", refusal(429, "TOOMANYREQUESTS", Retry_After="20000"), times=99)
    waits = Waits()
    with (
        reading(in_front(registry, trouble), waits=waits) as client,
        pytest.raises(OutsideSystemError, match="rate limit"),
    ):
        client.manifest("acme/tasks", "v1")
    assert waits.seconds == [20_000, 20_000]


@pytest.mark.parametrize(
    "trouble", [refusal(429, "TOOMANYREQUESTS", Retry_After="3600"), refusal(503, "UNAVAILABLE")], ids=["429", "503"]
)
def test_a_token_that_expires_while_waiting_is_replaced(registry: ASGIApp, trouble: Response) -> None:
    current: list[str] = []

    def answer(scope: Scope) -> Response | None:
        if scope["path"] == "/token":
            current.append(f"token-{len(current)}")
            return JSONResponse({"token": current[-1]})
        if not current or header_of(scope, "authorization") != f"Bearer {current[-1]}":
            challenge = f'Bearer realm="http://{header_of(scope, "host")}/token",service="test"'
            return refusal(401, "UNAUTHORIZED", WWW_Authenticate=challenge)
        if len(current) == 1:
            current.append("none that was issued")
            return trouble
        return None

    waits = Waits()
    with reading(in_front(registry, answer), waits=waits) as client:
        assert client.manifest("acme/tasks", "v1") is None
    assert len(waits.seconds) == 1
    assert len(current) == 3


def test_a_manifest_that_is_not_what_was_asked_for_is_refused(registry: ASGIApp) -> None:
    def lie(scope: Scope) -> Response | None:
        return Response(b"{}") if "/manifests/sha256" in scope["path"] else None

    with reading(in_front(registry, lie)) as client, pytest.raises(OutsideSystemError, match="hashes to"):
        client.manifest("acme/tasks", digest_of(b"another"))


def test_a_manifest_is_kept_under_its_tag(registry: ASGIApp) -> None:
    with reading(registry) as client:
        config = client.put_blob("acme/tasks", b"{}", "application/json")
        manifest = image_of(config)
        client.put_manifest("acme/tasks", "v1", manifest)
        assert client.manifest("acme/tasks", "v1") == client.manifest("acme/tasks", manifest.digest) == manifest
        assert client.may_read("acme/tasks", "v1")
        assert not client.may_read("acme/tasks", "v2")
