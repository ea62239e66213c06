"""The disk budget: the least recently used mirror goes, one in use never does, whichever process uses it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from formulacode_dagster.cli.app import app
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.sources.git.eviction import MirrorState, evict, kept_mirrors, make_room
from formulacode_dagster.sources.git.mirror import MirrorCache
from formulacode_dagster.sources.git.use import MirrorUse

NAMES = ("demo/one", "demo/two", "demo/three")
WORK = """
import random, sys
from pathlib import Path
from formulacode_dagster.sources.git.eviction import make_room
from formulacode_dagster.sources.git.mirror import MirrorCache
root, url, head, seed = Path(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4])
chance = random.Random(seed)
cache = MirrorCache(root, url, filtered=True, budget=1)
evicted = 0
for _ in range(5):
    name = chance.choice(["demo/one", "demo/two", "demo/three"])
    with cache.ensure(name, commits=[head]) as mirror:
        assert mirror.read(head, "a.py") == b"one\\ntwo\\nthree\\n", name
        evicted += len(make_room(root, 0)[0])
        assert mirror.path.exists()
        mirror.complete(head)
        assert sorted(mirror.list(head)) == ["a.py", "b.py", "docs/c.txt"]
        assert mirror.read(head, "docs/c.txt") == b"c\\n"
print(evicted + len(cache.evicted))
"""
HOLD = """
import sys
from pathlib import Path
from formulacode_dagster.sources.git.mirror import MirrorCache
mirror = MirrorCache(Path(sys.argv[1]), sys.argv[2]).ensure("demo/one")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def hosted(origin) -> str:
    """The origin under three names."""
    for name in NAMES:
        (origin.host / f"{name}.git").symlink_to(origin.bare)
    return origin.url


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "mirrors"


def names(root: Path) -> list[str]:
    return [mirror.repository for mirror in kept_mirrors(root)]


def used(root: Path, name: str, seconds_ago: float) -> None:
    moment = time.time() - seconds_ago
    os.utime(root / f"{name}.use", (moment, moment))


def filled(root: Path, url: str, **more) -> MirrorCache:
    cache = MirrorCache(root, url, filtered=True, **more)
    for age, name in enumerate(NAMES):
        cache.ensure(name).close()
        used(root, name, 1000 - age)
    return cache


def test_the_mirror_unused_for_longest_goes_first_and_the_log_hears_of_it(root, hosted):
    said: list[str] = []
    cache = filled(root, hosted)
    sizes = {mirror.repository: mirror.bytes for mirror in kept_mirrors(root)}
    assert all(size > 1000 for size in sizes.values())
    used(root, "demo/one", 1)
    cache = MirrorCache(root, hosted, filtered=True, budget=sum(sizes.values()) + 100, say=said.append)
    with cache.ensure("demo/project"):
        pass
    assert set(names(root)) == {"demo/project", "demo/three", "demo/one"}
    assert [mirror.repository for mirror in cache.evicted] == ["demo/two"]
    assert said == [f"evicted from {root}: {cache.evicted[0]}"]
    assert "demo/two (0.1 MB, last used 20" in said[0]


def test_without_a_budget_no_mirror_goes_and_keeping_one_is_free(root, hosted):
    assert filled(root, hosted).evicted == []
    assert filled(root, hosted, budget=10**9).evicted == []
    assert len(names(root)) == 3


def test_reading_a_complete_mirror_does_not_check_the_budget(root, hosted, origin):
    filled(root, hosted)
    cache = MirrorCache(root, hosted, filtered=True, budget=1)
    cache.ensure("demo/three", commits=[origin.sha()]).close()
    assert len(names(root)) == 3


def test_a_mirror_in_use_stays_whatever_the_budget(root, hosted, origin):
    said: list[str] = []
    filled(root, hosted)
    cache = MirrorCache(root, hosted, filtered=True, budget=1, say=said.append)
    with cache.ensure("demo/one") as held, cache.ensure("demo/project"):
        assert sorted(names(root)) == ["demo/one", "demo/project"]
        assert held.read(origin.sha(), "a.py") == b"one\ntwo\nthree\n"
        assert "over FC_MIRRORS_GB: all its mirrors are in use" in said[-1]
    make_room(root, 1)
    assert names(root) == []


def test_a_mirror_that_nobody_refers_to_any_more_is_not_in_use(root, hosted):
    mirror = MirrorCache(root, hosted).ensure("demo/one")
    with pytest.raises(ItemFailure, match="is in use") as caught:
        evict(root, "demo/one")
    assert caught.value.kind == "busy"
    del mirror
    assert evict(root, "demo/one").repository == "demo/one"
    assert not (root / "demo" / "one.git").exists()


def test_a_mirror_held_by_another_process_stays_until_that_process_is_gone(root, hosted):
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(root), hosted], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert other.stdout.readline() == b"held\n"
        assert [mirror.state for mirror in kept_mirrors(root)] == [MirrorState.IN_USE]
        assert make_room(root, 0)[0] == []
    finally:
        other.kill()
        other.communicate()
    assert [mirror.repository for mirror in make_room(root, 0)[0]] == ["demo/one"]


@pytest.mark.slow
def test_processes_clone_read_and_evict_at_once(root, hosted, origin):
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WORK, str(root), hosted, origin.sha(), str(seed)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for seed in range(3)
    ]
    answers = [process.communicate(timeout=120) for process in running]
    assert [process.returncode for process in running] == [0] * 3, answers
    assert sum(int(out) for out, _ in answers) > 0
    assert list((root / ".partial").iterdir()) == []


def test_what_an_eviction_that_was_killed_has_left_is_removed_by_the_next(root, hosted):
    filled(root, hosted)
    left = root / ".partial" / "demo,one@evicted-1"
    (root / "demo" / "one.git").rename(left)
    make_room(root, 10**9)
    assert not left.exists()


def test_a_size_is_measured_anew_when_the_mirror_has_grown(root, hosted, origin):
    cache = filled(root, hosted)
    use = MirrorUse(root / "demo" / "one.git")
    before = use.size()
    assert use.size() == before
    origin.write({"big.bin": os.urandom(100_000)})
    head = origin.commit("More")
    origin.publish()
    with cache.ensure("demo/one", commits=[head]) as mirror:
        mirror.complete(head)
    used(root, "demo/one", 100)
    assert use.size() > before + 90_000
    assert time.time() - use.last().timestamp() > 99


def test_contents_shared_with_the_host_by_hard_links_are_not_counted(root, hosted, origin):
    origin.write({"big.bin": os.urandom(200_000)})
    origin.commit("More")
    origin.publish()
    MirrorCache(root, hosted).ensure("demo/one").close()
    assert kept_mirrors(root)[0].bytes < 200_000


def test_a_renamed_repository_is_cloned_anew_and_reads_the_same(root, origin):
    cache = MirrorCache(root, origin.url)
    head = origin.sha()
    cache.ensure("demo/project", commits=[head]).close()
    origin.bare.rename(origin.host / "demo" / "renamed.git")
    with cache.ensure("demo/renamed", commits=[head]) as mirror, cache.ensure("demo/project", commits=[head]) as old:
        assert mirror.read(head, "a.py") == old.read(head, "a.py")
    used(root, "demo/project", 100)
    assert [mirror.repository for mirror in make_room(root, kept_mirrors(root)[0].bytes)[0]] == ["demo/project"]


def shown(monkeypatch, root: Path, *evicted: str, gigabytes: str = "50") -> str:
    monkeypatch.setenv("FC_MIRRORS_DIR", str(root))
    monkeypatch.setenv("FC_MIRRORS_GB", gigabytes)
    options = [option for mirror in evicted for option in ("--evict", mirror)]
    return CliRunner().invoke(app, ["mirrors", *options], catch_exceptions=False).stdout


def test_the_command_lists_and_removes_mirrors(root, hosted, monkeypatch):
    cache = filled(root, hosted)
    (root / "demo" / "two.git" / "shallow").touch()
    with cache.ensure("demo/one"):
        lines = shown(monkeypatch, root).splitlines()
        assert [line.split()[0] for line in lines[1:4]] == ["demo/one", "demo/three", "demo/two"]
        assert lines[1].rstrip().endswith("in use")
        assert lines[2].rstrip().endswith("ready")
        assert "broken: its history is cut short (shallow)" in lines[3]
        assert lines[4].startswith("3 mirrors, 0.00 GB of 50 GB (FC_MIRRORS_GB)")
        with pytest.raises(ItemFailure, match="demo/one is in use"):
            shown(monkeypatch, root, "demo/one")
    assert shown(monkeypatch, root, "demo/one", "demo/two").startswith("evicted demo/one (0.1 MB")
    assert "1 mirrors, 0.00 GB no limit" in shown(monkeypatch, root, gigabytes="0")
    with pytest.raises(ConfigurationError, match="there is no mirror of demo/one"):
        shown(monkeypatch, root, "demo/one")


def test_without_any_mirror_the_command_says_so(root, monkeypatch):
    assert shown(monkeypatch, root).startswith("0 mirrors")
