"""Damage to a mirror by kill -9, a full disk or a stranger: found on use, and repaired."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError
from formulacode_dagster.sources.git.damage import INDEXED_SECONDS, damage_of
from formulacode_dagster.sources.git.mirror import Mirror, MirrorCache
from tests.support.clock import FakeClock

NAME = "demo/project"


def pack_of(mirror: Path, suffix: str = "pack") -> Path:
    return next((mirror / "objects" / "pack").glob(f"*.{suffix}"))


def cut(path: Path, bytes_left: int) -> None:
    content = path.read_bytes()
    path.unlink()
    path.write_bytes(content[:bytes_left])


def edited(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)


DAMAGE: dict[str, Callable[[Path], object]] = {
    "found broken": lambda mirror: (mirror / "broken").touch(),
    "a pack without its index": lambda mirror: pack_of(mirror, "idx").unlink(),
    "an index without its pack": lambda mirror: pack_of(mirror).unlink(),
    "a pack cut short": lambda mirror: cut(pack_of(mirror), 100),
    "an index cut short": lambda mirror: cut(pack_of(mirror, "idx"), 1000),
    "an empty pack": lambda mirror: cut(pack_of(mirror), 0),
    "half a packed-refs": lambda mirror: cut(mirror / "packed-refs", 60),
    "no refs at all": lambda mirror: (mirror / "packed-refs").unlink(),
    "an empty HEAD": lambda mirror: edited(mirror / "HEAD", ""),
    "no configuration": lambda mirror: (mirror / "config").unlink(),
    "an empty configuration": lambda mirror: edited(mirror / "config", ""),
    "a configuration that is none": lambda mirror: edited(mirror / "config", '[remote "origin"]\n[core'),
    "shallow": lambda mirror: edited(mirror / "shallow", f"{'1' * 40}\n"),
    "grafts": lambda mirror: edited(mirror / "info" / "grafts", f"{'1' * 40} {'2' * 40}\n"),
    "no objects": lambda mirror: shutil.rmtree(mirror / "objects"),
}


@pytest.fixture
def filtered(tmp_path, origin) -> MirrorCache:
    return MirrorCache(tmp_path / "mirrors", origin.url, filtered=True)


@pytest.mark.parametrize("how", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_mirror_is_rebuilt_when_it_is_asked_for(tmp_path, origin, how):
    later = FakeClock(time.time() + 60 * INDEXED_SECONDS)
    filtered = MirrorCache(tmp_path / "mirrors", origin.url, filtered=True, clock=later)
    head = origin.sha()
    with filtered.ensure(NAME) as mirror:
        path = mirror.path
    assert damage_of(path) == ""
    how(path)
    assert damage_of(path, later)
    with filtered.ensure(NAME, commits=[head]) as mirror:
        assert mirror.read(head, "a.py") == b"one\ntwo\nthree\n"
    assert damage_of(path) == ""
    assert list((path.parent.parent / ".partial").iterdir()) == []


def test_a_pack_whose_index_is_just_being_written_is_no_damage(filtered):
    with filtered.ensure(NAME) as mirror:
        pack_of(mirror.path, "idx").unlink()
        assert "index" not in damage_of(mirror.path)


@pytest.mark.parametrize("left", ["packed-refs.lock", "refs/heads/main.lock", "shallow.lock"])
def test_lock_files_of_a_killed_git_are_removed_when_they_are_in_the_way(origin, filtered, left):
    with filtered.ensure(NAME) as mirror:
        edited(mirror.path / left, "")
    origin.write({"a.py": "new\n"})
    head = origin.commit("More")
    origin.publish()
    with filtered.ensure(NAME, commits=[head]) as mirror:
        assert mirror.read(head, "a.py") == b"new\n"


def test_a_lock_file_elsewhere_is_nobody_s_to_remove(tmp_path, filtered):
    from formulacode_dagster.sources.git.command import GitError
    from formulacode_dagster.sources.git.faults import unlock

    (tmp_path / "other.lock").touch()
    with filtered.ensure(NAME) as mirror:
        unlock(GitError(("fetch",), 128, f"fatal: Unable to create '{tmp_path}/other.lock': File exists."), mirror.path)
    assert (tmp_path / "other.lock").exists()


@pytest.mark.parametrize("left", [0, 10])
def test_a_loose_object_cut_short_is_found_when_it_is_read(origin, tmp_path, left):
    cache = MirrorCache(tmp_path / "mirrors", origin.url)
    head = origin.sha()
    blob = origin.git("rev-parse", "HEAD:a.py")
    with cache.ensure(NAME) as mirror:
        loose = mirror.path / "objects" / blob[:2] / blob[2:]
        cut(loose, left)
        with pytest.raises(ItemFailure) as caught:
            mirror.read(head, "a.py")
        assert caught.value.kind == "mirror_broken"
    with cache.ensure(NAME) as mirror:
        assert mirror.read(head, "a.py") == b"one\ntwo\nthree\n"


def test_a_file_whose_content_is_lost_is_no_absent_file(origin, tmp_path):
    cache = MirrorCache(tmp_path / "mirrors", origin.url)
    head = origin.sha()
    blob = origin.git("rev-parse", "HEAD:docs/c.txt")
    with cache.ensure(NAME) as mirror:
        (mirror.path / "objects" / blob[:2] / blob[2:]).unlink()
        assert mirror.read(head, "docs/other.txt") is None
        with pytest.raises(ItemFailure) as caught:
            mirror.read(head, "docs/c.txt")
        assert caught.value.kind == "mirror_broken"
    with cache.ensure(NAME) as mirror:
        assert mirror.read(head, "docs/c.txt") == b"c\n"


def test_who_reads_while_another_rebuilds_keeps_what_was_fetched_for_him(origin, filtered):
    origin.branch("topic")
    origin.write({"a.py": "topic\n"})
    head = origin.commit("Topic")
    origin.publish(number=7, head=head)
    with filtered.ensure(NAME, commits=[head]) as reader:
        (reader.path / "broken").touch()
        filtered.ensure(NAME).close()
        assert reader.has(head)
        assert reader.read(head, "a.py") == b"topic\n"


def test_a_host_with_a_shallow_copy_is_told_by_name(origin, tmp_path):
    shallow = origin.host / "demo" / "shallow.git"
    origin.commit("Second")
    origin.publish()
    run = ["git", "-c", "protocol.file.allow=always", "clone", "-q", "--bare", "--depth=1"]
    subprocess.run([*run, f"file://{origin.bare}", str(shallow)], check=True)
    with pytest.raises(ItemFailure, match="cut short") as caught:
        MirrorCache(tmp_path / "mirrors", origin.url).ensure("demo/shallow")
    assert caught.value.kind == "shallow"
    assert not (tmp_path / "mirrors" / "demo" / "shallow.git").exists()


def test_many_unknown_commits_leave_the_known_one_fetched(origin, filtered):
    filtered.ensure(NAME).close()
    origin.branch("topic")
    head = origin.commit("Topic")
    origin.publish(number=7, head=head)
    unknown = [f"{number:040x}" for number in range(1, 6)]
    with filtered.ensure(NAME, commits=[*unknown, head]) as mirror:
        assert [mirror.has(sha) for sha in (head, *unknown)] == [True] + [False] * 5


@pytest.mark.slow
def test_a_full_disk_while_cloning_stops_the_stage_without_half_mirrors(origin, tmp_path):
    origin.write({"big.bin": os.urandom(3_000_000)})
    origin.commit("Big")
    origin.publish()
    root = tmp_path / "small"
    root.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(root)]
    mounted = subprocess.run(mount, capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip(f"this user may not mount a small file system: {mounted.stderr.decode().strip()}")
    try:
        cache, head = MirrorCache(root, origin.url, filtered=True), origin.sha()
        with cache.ensure(NAME, commits=[head]) as mirror, pytest.raises(OutsideSystemError, match="FC_MIRRORS_DIR"):
            mirror.complete(head)
        shutil.rmtree(root / "demo")
        # another file system, so that nothing can be linked
        with pytest.raises(OutsideSystemError, match=r"No space left on device\. Free space under FC_MIRRORS_DIR"):
            MirrorCache(root, origin.url).ensure(NAME)
        assert sorted(path.name for path in root.rglob("*") if path.is_file()) == ["project.lock"]
    finally:
        subprocess.run(["umount", "--lazy", str(root)], check=True)


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
