"""Mirrors of many packs become mirrors of one: nothing is lost or fetched, and no reader is disturbed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from formulacode_dagster.sources.git import repacking
from formulacode_dagster.sources.git.command import GitError
from formulacode_dagster.sources.git.damage import damage_of
from formulacode_dagster.sources.git.eviction import kept_mirrors
from formulacode_dagster.sources.git.mirror import MirrorCache
from formulacode_dagster.sources.git.repacking import RepackReport, repack_mirrors
from tests.support.git_origin import NAME, GitHost, Origin


@pytest.fixture(autouse=True)
def bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repacking, "MOST_PACKS", 2)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "mirrors"


def grown(root: Path, url: str, origin: Origin, *, filtered: bool) -> tuple[MirrorCache, list[str]]:
    """A mirror that was fetched into four times, and its commits; the branch was rewritten before the last."""
    cache = MirrorCache(root, url, filtered=filtered)
    commits = []
    for number in range(4):
        origin.write({"a.py": f"{number}\n" * 500})
        if number == 3:
            origin.git("reset", "--quiet", "--hard", "HEAD~2")
            origin.write({"b.py": "another\n"})
        commits.append(origin.commit(f"Change {number}"))
        origin.publish()
        with cache.ensure(NAME, commits=commits[-1:]) as mirror:
            mirror.complete(commits[-1])
    return cache, commits


def packs(root: Path) -> list[Path]:
    return list((root / f"{NAME}.git" / "objects" / "pack").glob("*.pack"))


def repack(root: Path, *, dry_run: bool = False) -> RepackReport:
    return repack_mirrors(root, dry_run=dry_run)


@pytest.mark.slow
@pytest.mark.parametrize("filtered", [False, True])
def test_many_packs_become_one_and_no_commit_is_lost(
    root: Path, origin: Origin, git_host: GitHost, filtered: bool
) -> None:
    cache, commits = grown(root, git_host.url if filtered else origin.url, origin, filtered=filtered)
    used, count = kept_mirrors(root)[0].last_used, len(packs(root))
    assert count > 2
    told = repack(root, dry_run=True)
    assert len(packs(root)) == count
    asked = len(git_host.requests)
    done = repack(root)
    assert [mirror.repository for mirror in told.repacked] == [mirror.repository for mirror in done.repacked] == [NAME]
    (mirror,) = done.repacked
    assert (mirror.packs, mirror.bytes_before) == (told.repacked[0].packs, told.repacked[0].bytes_before)
    assert mirror.bytes_after < mirror.bytes_before
    assert mirror.bytes_after == kept_mirrors(root)[0].bytes
    assert [why for _, why, _ in done.gone()] == [f"{mirror.packs} packs, 0 loose objects"]
    assert "repacked: mirrors 1, from 0." in done.summary
    assert "to repack: mirrors 1" in told.summary
    assert len(packs(root)) == 1
    assert kept_mirrors(root)[0].last_used == used, "to repack is not to use"
    with cache.ensure(NAME) as kept:
        assert [kept.read(commit, "a.py") for commit in commits[:3]] == [
            b"%d\n" % number * 500 for number in range(3)
        ], "what no branch reaches any more, too"
    assert not damage_of(root / f"{NAME}.git")
    assert len(git_host.requests) == asked
    assert repack(root).repacked == ()


def test_a_mirror_in_use_stays_as_it_is(root: Path, origin: Origin) -> None:
    cache, _ = grown(root, origin.url, origin, filtered=False)
    before = packs(root)
    with cache.ensure(NAME):
        report = repack(root)
    assert (report.repacked, report.in_use) == ((), (NAME,))
    assert f"in use: {NAME}" in report.summary
    assert packs(root) == before
    assert len(repack(root).repacked) == 1


def test_nobody_begins_to_use_one_that_is_being_repacked(
    root: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, _ = grown(root, origin.url, origin, filtered=False)
    monkeypatch.setattr("formulacode_dagster.sources.git.mirror.LOCK_SECONDS", 0.05)
    refused = []

    def ensure_meanwhile(*arguments: object, **options: object) -> bytes:
        if "repack" in arguments:
            with pytest.raises(Exception, match="another process has held the mirror") as caught:
                cache.ensure(NAME)
            refused.append(caught.value)
        return b""

    monkeypatch.setattr(repacking, "git", ensure_meanwhile)
    repack(root)
    assert len(refused) == 1


@pytest.mark.slow
def test_packs_shared_by_hard_links_stay_shared(root: Path, origin: Origin) -> None:
    subprocess.run(["git", "-C", str(origin.bare), "repack", "-adq"], check=True)
    grown(root, origin.url, origin, filtered=False)
    (shared,) = (pack for pack in packs(root) if pack.stat().st_nlink > 1)
    repack(root)
    assert shared.stat().st_nlink > 1
    assert len(packs(root)) == 2


def test_what_a_killed_git_left_is_removed_first(root: Path, origin: Origin) -> None:
    grown(root, origin.url, origin, filtered=False)
    left = [packs(root)[0].parent / name for name in (".tmp-7-pack-1.pack", "tmp_pack_x")]
    for path in left:
        path.write_bytes(b"half")
    assert len(repack(root).repacked) == 1
    assert not any(path.exists() for path in left)


def test_one_that_cannot_be_repacked_is_told_of_and_stays(
    root: Path, origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, commits = grown(root, origin.url, origin, filtered=False)
    monkeypatch.setattr("formulacode_dagster.sources.git.repacking.shutil.disk_usage", lambda _: _Full())
    report = repack(root)
    assert report.failed == ((NAME, "the disk has no room for a second copy"),)
    assert f"{NAME} stays as it is: the disk has no room" in report.summary
    monkeypatch.undo()
    monkeypatch.setattr(repacking, "MOST_PACKS", 2)

    def killed(mirror: Path, *_: str, **__: object) -> bytes:
        (mirror / "objects" / "pack" / ".tmp-1-pack-2.pack").write_bytes(b"half")
        raise GitError(("repack",), -9, "", timed_out=True)

    monkeypatch.setattr(repacking, "git", killed)
    assert [name for name, _ in repack(root).failed] == [NAME]
    assert not damage_of(root / f"{NAME}.git"), "nothing half is left"
    with cache.ensure(NAME) as mirror:
        assert mirror.has(commits[0])


class _Full:
    free = 0


def test_a_damaged_one_is_left_to_be_rebuilt(root: Path, origin: Origin) -> None:
    grown(root, origin.url, origin, filtered=False)
    (root / f"{NAME}.git" / "broken").touch()
    assert repack(root).failed == ((NAME, "it is rebuilt when it is used: found broken"),)


def test_where_there_are_no_mirrors_there_is_nothing_to_do(root: Path) -> None:
    assert repack(root).repacked == ()
