from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from formulacode_dagster.git import remote
from formulacode_dagster.git.blobs import is_filtered
from formulacode_dagster.git.mirror import Mirror, MirrorCache
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError
from formulacode_dagster.sandbox.server import serving

NAME = "demo/project"
ENSURE = """
import sys
from pathlib import Path
from formulacode_dagster.git.mirror import MirrorCache
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
def test_a_pull_request_s_head_is_fetched_by_hash_or_by_name_and_no_other(origin, tmp_path, filtered):
    cache = MirrorCache(tmp_path / "mirrors", origin.url, filtered=filtered)
    heads = {}
    for number in (7, 8, 9):
        origin.branch(f"feature-{number}")
        origin.write({"a.py": f"{number}\n"})
        heads[number] = origin.commit(f"Change {number}")
        if number == 9:
            cache.ensure(NAME)
        origin.publish(number=number, head=heads[number])
    with cache.ensure(NAME, commits=[heads[7]], refs=["refs/pull/8/head", "refs/pull/77/head"]) as mirror:
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
        mirror.prepare([facts])
        mirror.complete(base)
        shutil.move(origin.host, tmp_path / "elsewhere")
        change, patch = mirror.change(facts)
        assert change.base_sha == base
        assert len(patch) > 100_000
        assert mirror.read(base, "docs/c.txt") == b"c\n"


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


def packed(mirror: Mirror) -> Path:
    """The mirror's pack; its own, since a hard-linked one is the origin's too."""
    subprocess.run(["git", "repack", "-adq"], cwd=mirror.path, check=True)
    (pack,) = (mirror.path / "objects" / "pack").glob("*.pack")
    content = pack.read_bytes()
    pack.unlink()
    pack.write_bytes(content)
    return pack


def test_a_pack_that_was_cut_short_is_detected_and_the_mirror_rebuilt(origin, cache):
    head = origin.sha()
    with cache.ensure(NAME) as mirror:
        pack = packed(mirror)
    pack.write_bytes(pack.read_bytes()[:-30])
    with cache.ensure(NAME, commits=[head]) as mirror:
        assert mirror.read(head, "b.py") == b"b\n"


def test_damage_found_while_reading_has_the_next_run_rebuild_the_mirror(origin, cache):
    head = origin.sha()
    with cache.ensure(NAME) as mirror:
        pack = packed(mirror)
        content = bytearray(pack.read_bytes())
        content[12:-20] = bytes(len(content) - 32)
        pack.write_bytes(content)
        with pytest.raises(ItemFailure) as caught:
            mirror.list(head)
        assert caught.value.kind == "mirror_broken"
    with cache.ensure(NAME, commits=[head]) as mirror:
        assert "a.py" in mirror.list(head)


def test_a_mirror_without_a_head_is_rebuilt(origin, cache):
    with cache.ensure(NAME) as mirror:
        (mirror.path / "HEAD").write_text("")
    with cache.ensure(NAME, commits=[origin.sha()]) as mirror:
        assert mirror.has(origin.sha())


def test_a_repository_that_vanished_is_named(cache):
    with pytest.raises(ItemFailure, match="demo/gone") as caught:
        cache.ensure("demo/gone")
    assert caught.value.kind == "vanished"


def test_an_empty_repository_has_an_empty_mirror(origin, cache):
    subprocess.run(["git", "init", "-q", "--bare", str(origin.host / "demo" / "empty.git")], check=True)
    for _ in range(2):
        with cache.ensure("demo/empty", commits=["1" * 40]) as mirror:
            assert not mirror.has("1" * 40)


def test_a_host_that_does_not_answer_stops_the_stage(tmp_path, monkeypatch):
    monkeypatch.setattr(remote, "FIRST_WAIT_SECONDS", 0.01)
    with pytest.raises(OutsideSystemError, match="GITHUB_CLONE_URL"):
        MirrorCache(tmp_path, "http://127.0.0.1:1").ensure(NAME)


@pytest.mark.parametrize(
    ("status", "outcome"),
    [(404, "vanished"), (401, "vanished"), (451, "vanished"), (500, "git"), (503, "git"), (429, "git")],
)
def test_what_a_real_host_answers_is_understood(tmp_path, monkeypatch, status, outcome):
    monkeypatch.setattr(remote, "FIRST_WAIT_SECONDS", 0.01)
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
        MirrorCache(tmp_path, url).ensure(NAME)
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


def test_files_are_read_and_listed_without_a_checkout(origin, mirror_of):
    odd = os.fsdecode(b"docs/odd \xff\n.txt")
    origin.write({odd: "odd", "bin/tool": b"\0\n\r"})
    (origin.work / "link").symlink_to("a.py")
    origin.git("update-index", "--add", "--cacheinfo", f"160000,{'1' * 40},vendor")
    head = origin.commit("Files")
    mirror = mirror_of(head)
    assert mirror.list(head, "docs") == mirror.list(head, "docs/") == ["docs/c.txt", odd]
    assert set(mirror.list(head)) == {"a.py", "b.py", "bin/tool", "docs/c.txt", odd, "link"}
    assert mirror.read(head, odd) == b"odd"
    assert mirror.read(head, "bin/tool") == b"\0\n\r"
    assert mirror.read(head, "link") == b"a.py"
    assert [mirror.read(head, path) for path in ("docs", "nothing", "vendor", "a.py/b", "")] == [None] * 5
    assert mirror.list(head, "nothing") == []


def test_reading_at_an_unknown_commit_is_not_an_absent_file(mirror_of):
    with pytest.raises(ItemFailure) as caught:
        mirror_of().read("f" * 40, "a.py")
    assert caught.value.kind == "commit_missing"


def test_the_anchor_is_the_last_commit_before_a_moment_on_the_main_line(origin, mirror_of):
    first = origin.sha()
    second = origin.commit("Second", hours=24)
    moment = origin.moment
    third = origin.commit("Third", hours=24)
    mirror = mirror_of(third)
    assert mirror.anchor(third, moment + timedelta(seconds=1)) == second
    assert mirror.anchor(third, moment) == first
    assert mirror.anchor(third, moment + timedelta(days=9)) == third
    assert mirror.anchor(third, moment - timedelta(days=900)) == first


def test_later_commits_of_the_main_line_are_found_by_what_they_change(origin, mirror_of):
    first = origin.git("rev-parse", "HEAD")
    origin.write({"benchmarks/x.py": "x\n"})
    second = origin.commit("Add a benchmark")
    origin.write({"a.py": "other\n"})
    origin.commit("Change something else")
    origin.git("checkout", "--quiet", "-b", "side")
    origin.write({"benchmarks/deep/y.py": "y\n"})
    origin.commit("Add another on a branch")
    origin.git("checkout", "--quiet", "-")
    origin.git("merge", "--quiet", "--no-ff", "-m", "Merge the branch", "side")
    merge = origin.git("rev-parse", "HEAD")
    origin.publish()
    mirror = mirror_of(merge)
    assert mirror.later(first, "benchmarks/**") == (second, merge)
    assert mirror.later(second, "benchmarks/**") == (merge,)
    assert mirror.later(first, "**/asv.conf.json") == ()


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
    from formulacode_dagster.git.command import environment

    assert not {"GH_TOKENS", "GIT_DIR"} & set(environment())
