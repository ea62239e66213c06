"""Names and addresses that are refused, and what a host, a disk or a folder that fails makes of a mirror."""

from __future__ import annotations

import os

import pytest

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError
from formulacode_dagster.operating.cancellation.backoff import Backoff
from formulacode_dagster.sources.git import remote
from formulacode_dagster.sources.git.mirror import MirrorCache
from sandbox.server import serving
from tests.support.git_origin import NAME

QUICK = Backoff(first_seconds=0.01, longest_seconds=0.05)


def test_a_repository_that_the_folder_lacks_is_named(cache):
    with pytest.raises(ItemFailure, match="demo/gone") as caught:
        cache.ensure("demo/gone")
    assert caught.value.kind == "mirror"


def test_a_host_that_does_not_answer_stops_the_stage(tmp_path):
    with pytest.raises(OutsideSystemError, match="GITHUB_CLONE_URL"):
        MirrorCache(tmp_path, "http://127.0.0.1:1", backoff=QUICK).ensure(NAME)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [
        (404, "vanished"),
        (401, "vanished"),
        (451, "vanished"),
        (500, "incomplete"),
        (503, "incomplete"),
        (429, "incomplete"),
    ],
)
def test_what_a_real_host_answers_is_understood(tmp_path, status, outcome):
    asked = []

    async def app(scope, receive, send):
        if scope["type"] == "lifespan":
            while True:
                message = await receive()
                await send({"type": f"{message['type']}.complete"})
                if message["type"] == "lifespan.shutdown":
                    return
        asked.append(scope["path"])
        headers = [(b"www-authenticate", b'Basic realm="git"')] if status == 401 else []
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    with serving(app) as url, pytest.raises((ItemFailure, OutsideSystemError)) as caught:
        MirrorCache(tmp_path, url, backoff=QUICK).ensure(NAME)
    assert outcome == (caught.value.kind if isinstance(caught.value, ItemFailure) else caught.value.system)
    assert asked[0] == f"/{NAME}.git/info/refs"
    assert len(asked) >= (1 if outcome == "vanished" else remote.ATTEMPTS)


def test_a_folder_of_mirrors_that_is_not_there_stops_the_stage(tmp_path):
    with pytest.raises(OutsideSystemError, match="is not there"):
        MirrorCache(tmp_path / "mirrors", f"file://{tmp_path / 'nothing'}").ensure(NAME)


def test_a_full_disk_stops_the_stage(origin, tmp_path, monkeypatch):
    full = tmp_path / "bin"
    full.mkdir()
    (full / "git").write_text("#!/bin/sh\necho 'fatal: write error: No space left on device' >&2\nexit 128\n")
    (full / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{full}:{os.environ['PATH']}")
    with pytest.raises(OutsideSystemError, match="No space left"):
        MirrorCache(tmp_path / "mirrors", origin.url).ensure(NAME)


def test_a_root_that_cannot_be_written_stops_the_stage(origin, tmp_path):
    (tmp_path / "mirrors").write_text("a file")
    with pytest.raises(OutsideSystemError, match="FC_MIRRORS_DIR"):
        MirrorCache(tmp_path / "mirrors", origin.url).ensure(NAME)


@pytest.mark.parametrize("name", ["../etc", "a/..", "a/b/c", "a", "/a/b", "-u/b", "a/b\n", "a/b.git", "--x/y", "a//b"])
def test_names_that_could_leave_the_folder_are_refused(cache, name):
    with pytest.raises(ItemFailure) as caught:
        cache.ensure(name)
    assert caught.value.kind == "name"


@pytest.mark.parametrize("url", ["ext::sh -c true", "git@host:x", "/folder", "ssh://host", ""])
def test_only_https_and_folders_are_cloned_from(tmp_path, url):
    with pytest.raises(ConfigurationError, match="GITHUB_CLONE_URL"):
        MirrorCache(tmp_path, url)
