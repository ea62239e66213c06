"""Mirrors: made once, fetched into, kept filtered, shared by threads and processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from formulacode_dagster.sources.git import command, history
from formulacode_dagster.sources.git.blobs import fetch_missing, is_filtered
from formulacode_dagster.sources.git.changes import change_of, prepare
from formulacode_dagster.sources.git.mirror import MirrorCache
from tests.support.git_origin import NAME
from tests.support.git_world import BareRepository

ENSURE = """
import sys
from pathlib import Path
from formulacode_dagster.sources.git.mirror import MirrorCache
with MirrorCache(Path(sys.argv[1]), sys.argv[2]).ensure("demo/project", commits=[sys.argv[3]]) as mirror:
    print(mirror.read(sys.argv[3], "a.py").decode())
"""


def test_a_mirror_is_made_once_and_then_needs_no_network(origin, cache):
    head = origin.sha()
    with cache.ensure(NAME, commits=[head]) as mirror:
        assert mirror.read(head, "a.py") == b"one\ntwo\nthree\n"
    shutil.rmtree(origin.host)
    with cache.ensure(NAME, commits=[head]) as mirror:
        assert mirror.has(head)


def test_what_is_missing_is_fetched(origin, cache):
    cache.ensure(NAME)
    origin.write({"a.py": "new\n"})
    head = origin.commit("More")
    origin.publish()
    with cache.ensure(NAME) as mirror:
        assert not mirror.has(head)
    with cache.ensure(NAME, commits=[head]) as mirror:
        assert mirror.read(head, "a.py") == b"new\n"


@pytest.mark.parametrize("filtered", [False, True])
def test_a_pull_request_s_head_is_fetched_by_hash_and_no_other(origin, tmp_path, filtered):
    cache = MirrorCache(tmp_path / "mirrors", origin.url, filtered=filtered)
    heads = {}
    for number in (7, 8, 9):
        origin.branch(f"feature-{number}")
        origin.write({"a.py": f"{number}\n"})
        heads[number] = origin.commit(f"Change {number}")
        if number == 9:
            cache.ensure(NAME)
        origin.publish(number=number, head=heads[number])
    with cache.ensure(NAME, commits=[heads[7], heads[8]]) as mirror:
        assert mirror.read(heads[7], "a.py") == b"7\n"
        assert mirror.read(heads[8], "a.py") == b"8\n"
        assert not mirror.has(heads[9])


def test_a_commit_that_the_host_does_not_have_leaves_the_others_fetched(origin, cache):
    cache.ensure(NAME)
    origin.write({"a.py": "new\n"})
    head = origin.commit("More")
    origin.publish()
    with cache.ensure(NAME, commits=["e" * 40, head, "f" * 40]) as mirror:
        assert mirror.has(head)
        assert not mirror.has("f" * 40)


def test_what_the_host_refused_is_not_asked_for_again(origin, cache):
    cache.ensure(NAME, commits=["e" * 40])
    shutil.rmtree(origin.host)
    with cache.ensure(NAME, commits=["e" * 40]) as mirror:
        assert not mirror.has("e" * 40)


def test_a_branch_that_became_a_folder_of_branches_is_fetched(origin, cache):
    origin.git("push", "--quiet", "origin", "main:refs/heads/topic")
    cache.ensure(NAME)
    origin.git("push", "--quiet", "origin", ":refs/heads/topic")
    origin.write({"a.py": "new\n"})
    head = origin.commit("More")
    origin.git("push", "--quiet", "origin", "main:refs/heads/topic/a")
    with cache.ensure(NAME, commits=[head]) as mirror:
        assert mirror.has(head)


def test_a_default_branch_that_was_renamed_is_followed(origin, cache):
    cache.ensure(NAME)
    origin.write({"a.py": "new\n"})
    head = origin.commit("More")
    origin.git("push", "--quiet", "origin", "main:refs/heads/trunk")
    command.git(origin.host / f"{NAME}.git", "symbolic-ref", "HEAD", "refs/heads/trunk")
    with cache.ensure(NAME, commits=[head]) as mirror:
        assert command.git(mirror.path, "rev-parse", "HEAD").decode().strip() == head


def test_a_head_that_is_a_commit_stays(origin, cache):
    with cache.ensure(NAME) as mirror:
        (mirror.path / "HEAD").write_text(f"{origin.sha()}\n")
    origin.git("push", "--quiet", "origin", "main:refs/heads/other")
    origin.write({"a.py": "new\n"})
    head = origin.commit("More")
    origin.publish()
    with cache.ensure(NAME, commits=[head]) as mirror:
        assert mirror.has(head)


def test_a_project_without_later_commits_is_not_fetched_again(origin, cache):
    since = datetime.now(tz=UTC)
    cache.ensure(NAME)
    shutil.rmtree(origin.host)
    with cache.ensure(NAME, since=since) as mirror:
        assert mirror.has(origin.sha())


def test_commits_of_a_branch_that_was_rewritten_are_kept(origin, cache):
    origin.write({"a.py": "lost\n"})
    lost = origin.commit("Lost")
    origin.publish()
    cache.ensure(NAME, commits=[lost])
    origin.git("reset", "--quiet", "--hard", "HEAD~1")
    head = origin.commit("Instead")
    origin.publish()
    with cache.ensure(NAME, commits=[lost, head]) as mirror:
        assert mirror.has(lost)


def test_a_filtered_mirror_holds_no_contents_until_they_are_asked_for(origin, tmp_path):
    cache = MirrorCache(tmp_path / "mirrors", origin.url, filtered=True)
    base = origin.sha()
    origin.write({"a.py": "new\n", "big.bin": os.urandom(100_000)})
    merge = origin.commit("More")
    origin.publish()
    with cache.ensure(NAME, commits=[merge]) as mirror:
        assert is_filtered(mirror.path)
        assert sum(path.stat().st_size for path in mirror.path.rglob("*")) < 100_000
        facts = origin.facts(merge, changed_files=2)
        prepare(mirror, [facts])
        mirror.complete(base)
        shutil.move(origin.host, tmp_path / "elsewhere")
        change, patch = change_of(mirror, facts)
        assert change.base_sha == base
        assert len(patch) > 100_000
        assert mirror.read(base, "docs/c.txt") == b"c\n"


@pytest.mark.slow
def test_two_processes_make_one_mirror(origin, tmp_path):
    arguments = [sys.executable, "-c", ENSURE, str(tmp_path / "mirrors"), origin.url, origin.sha()]
    running = [subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    answers = [process.communicate(timeout=60) for process in running]
    assert [out for out, _ in answers] == [b"one\ntwo\nthree\n\n"] * 2, answers
    assert not list((tmp_path / "mirrors" / ".partial").iterdir())


def test_threads_share_a_cache_and_a_mirror(origin, cache):
    head = origin.sha()

    def read(_: int) -> bytes | None:
        with cache.ensure(NAME, commits=[head]) as mirror:
            return mirror.read(head, "a.py")

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(read, range(16))) == {b"one\ntwo\nthree\n"}
    with cache.ensure(NAME) as shared, ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: shared.read(head, "b.py"), range(100))) == {b"b\n"}


def test_a_clone_that_was_killed_leaves_nothing_half(origin, tmp_path):
    root = tmp_path / "mirrors"
    slow = tmp_path / "bin"
    slow.mkdir()
    real = shutil.which("git")
    (slow / "git").write_text(
        f'#!/bin/sh\nif [ "$1" = clone ]; then for last; do :; done; mkdir -p "$last/objects"\n'
        f'touch {tmp_path}/cloning; sleep 60; fi\nexec {real} "$@"\n'
    )
    (slow / "git").chmod(0o755)
    environment = os.environ | {"PATH": f"{slow}:{os.environ['PATH']}"}
    arguments = [sys.executable, "-c", ENSURE, str(root), origin.url, origin.sha()]
    process = subprocess.Popen(arguments, env=environment)
    deadline = time.monotonic() + 30
    while not (tmp_path / "cloning").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(list((root / ".partial").iterdir())) == 1
    assert not (root / f"{NAME}.git").exists()
    with MirrorCache(root, origin.url).ensure(NAME, commits=[origin.sha()]) as mirror:
        assert mirror.has(origin.sha())
    assert not list((root / ".partial").iterdir())


def test_an_empty_repository_has_an_empty_mirror(origin, cache):
    BareRepository(origin.host / "demo" / "empty.git").write()
    for _ in range(2):
        with cache.ensure("demo/empty", commits=["1" * 40]) as mirror:
            assert not mirror.has("1" * 40)


def test_nothing_of_this_machine_reaches_git(monkeypatch, tmp_path, origin, cache):
    hook = tmp_path / "hooks"
    hook.mkdir()
    (hook / "post-checkout").write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    (hook / "post-checkout").chmod(0o755)
    (tmp_path / ".gitconfig").write_text(f'[core]\nhooksPath={hook}\n[url "ext::false"]\ninsteadOf=/\n')
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    monkeypatch.setenv("GH_TOKENS", "ghp_secret")
    with cache.ensure(NAME, commits=[origin.sha()]) as mirror:
        assert mirror.has(origin.sha())
    assert not (tmp_path / "hooked").exists()
    assert not {"GH_TOKENS", "GIT_DIR"} & set(command.environment())


def test_a_folder_of_several_commits_is_fetched_in_one_go(origin, tmp_path, monkeypatch):
    before = origin.sha()
    origin.write({"docs/c.txt": "other\n"})
    after = origin.commit("More")
    origin.publish()
    fetched = []
    monkeypatch.setattr(
        history, "fetch_missing", lambda path, wanted: fetched.append(wanted) or fetch_missing(path, wanted)
    )
    with MirrorCache(tmp_path / "mirrors", origin.url, filtered=True).ensure(NAME, commits=[before, after]) as mirror:
        mirror.complete(before, after, folder="docs")
        assert len(fetched) == 1
        shutil.move(origin.host, tmp_path / "elsewhere")
        assert [mirror.read(commit, "docs/c.txt") for commit in (before, after)] == [b"c\n", b"other\n"]
