from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from formulacode_dagster.building.specs.recipes import script
from formulacode_dagster.building.specs.sources import is_ancestor, is_version_tag, tree_of, write_bundle
from formulacode_dagster.models.errors import ItemFailure
from tests.support.git_world import BareRepository, git, lose_object
from tests.support.images import Sample


def commits_after(bundles: list[Path], folder: Path) -> set[str]:
    folder.mkdir()
    git(folder, "init", "-q")
    for bundle in bundles:
        for line in git(folder, "bundle", "unbundle", str(bundle)).splitlines():
            git(folder, "update-ref", *reversed(line.split()))
    return set(git(folder, "rev-list", "--all").split())


def test_a_bundle_holds_what_the_commit_reaches_and_nothing_later(pure: Sample, tmp_path: Path) -> None:
    write_bundle(pure.mirror, pure.base, tmp_path / "whole")
    assert commits_after([tmp_path / "whole"], tmp_path / "a") == {pure.anchor, pure.base}
    assert git(tmp_path / "a", "tag").split() == ["v0.1", "v1.0"]


def test_a_thin_bundle_adds_what_came_since_the_anchor(pure: Sample, tmp_path: Path) -> None:
    write_bundle(pure.mirror, pure.anchor, tmp_path / "anchor")
    write_bundle(pure.mirror, pure.base, tmp_path / "thin", since=pure.anchor)
    assert commits_after([tmp_path / "anchor", tmp_path / "thin"], tmp_path / "a") == {pure.anchor, pure.base}


def test_the_same_history_gives_the_same_bytes(pure: Sample, tmp_path: Path) -> None:
    write_bundle(pure.mirror, pure.base, tmp_path / "one")
    write_bundle(pure.mirror, pure.base, tmp_path / "two")
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_of_a_filtered_mirror_only_the_files_of_the_commit_are_packed(pure: Sample, tmp_path: Path) -> None:
    mirror = tmp_path / "filtered.git"
    clone = ("-c", "uploadpack.allowFilter=true", "clone", "-q", "--bare", "--no-local", "--filter=blob:none")
    git(tmp_path, *clone, f"file://{pure.mirror}", str(mirror))
    git(mirror, "archive", "-o", str(tmp_path / "files.tar"), pure.merge)
    write_bundle(mirror, pure.merge, tmp_path / "partial")
    commits_after([tmp_path / "partial"], tmp_path / "a")
    missing = git(tmp_path / "a", "rev-list", "--objects", "--missing=print", pure.merge).split()
    assert any(line.startswith("?") for line in missing)
    git(tmp_path / "a", "checkout", "-q", pure.merge)
    assert "refs/formulacode/partial" in git(tmp_path / "a", "for-each-ref")


def test_an_image_of_a_partial_bundle_treats_absent_contents_as_intact(pure: Sample, tmp_path: Path) -> None:
    mirror = tmp_path / "filtered.git"
    clone = ("-c", "uploadpack.allowFilter=true", "clone", "-q", "--bare", "--no-local", "--filter=blob:none")
    git(tmp_path, *clone, f"file://{pure.mirror}", str(mirror))
    git(mirror, "archive", "-o", str(tmp_path / "files.tar"), pure.merge)
    write_bundle(mirror, pure.merge, tmp_path / "partial")
    repository = tmp_path / "repository"
    (tmp_path / "base-sha").write_text(f"{pure.merge}\n")
    variables = {**os.environ, "FC_REPOSITORY": str(repository), "FC_TASK": str(tmp_path)}
    for step in (["fetch-history", str(tmp_path / "partial")], ["checkout"]):
        subprocess.run(["bash", str(script(step[0])), *step[1:]], env=variables, check=True)
    assert git(repository, "status", "--porcelain") == ""
    assert git(repository, "for-each-ref", "refs/formulacode") == ""
    assert set(git(repository, "log", "--format=%H").split()) == {pure.anchor, pure.base, pure.merge}
    git(repository, "fsck", "--connectivity-only")
    git(repository, "gc", "-q")


def test_history_that_lacks_an_old_file_is_packed_without_it(pure: Sample, tmp_path: Path) -> None:
    mirror = tmp_path / "damaged.git"
    git(tmp_path, "clone", "-q", "--bare", "--no-local", f"file://{pure.mirror}", str(mirror))
    drop_blob(mirror, set(git(mirror, "rev-list", "--objects", pure.base).split()), keep=pure.merge)
    write_bundle(mirror, pure.merge, tmp_path / "partial")
    commits_after([tmp_path / "partial"], tmp_path / "a")
    git(tmp_path / "a", "checkout", "-q", pure.merge)


def test_a_file_of_the_commit_that_the_mirror_lacks_is_the_items_failure(pure: Sample, tmp_path: Path) -> None:
    mirror = tmp_path / "damaged.git"
    git(tmp_path, "clone", "-q", "--bare", "--no-local", f"file://{pure.mirror}", str(mirror))
    drop_blob(mirror, set(git(mirror, "rev-list", "--objects", pure.merge).split()), keep=None)
    with pytest.raises(ItemFailure) as caught:
        write_bundle(mirror, pure.merge, tmp_path / "partial")
    assert caught.value.kind == "files_missing"


def test_a_file_that_nothing_reads_may_be_absent_from_mirror_and_image(tmp_path: Path) -> None:
    made = BareRepository(tmp_path / "a/b.git")
    files = {"docs/[logo] 1.png": "picture", "docs/index.rst": "A page", "a.py": "pass\n"}
    made.add("Begin", "2026-01-01T00:00:00", files=files)
    made.add("Later", "2026-01-02T00:00:00", files={"a.py": "...\n"})
    shas = made.write()
    lose_object(made.path, made.git("rev-parse", f"{shas[1]}:docs/[logo] 1.png"))
    write_bundle(made.path, shas[1], tmp_path / "anchor")
    write_bundle(made.path, shas[2], tmp_path / "thin", since=shas[1])
    repository = tmp_path / "repository"
    (tmp_path / "base-sha").write_text(f"{shas[2]}\n")
    variables = {**os.environ, "FC_REPOSITORY": str(repository), "FC_TASK": str(tmp_path)}
    steps = (["fetch-history", str(tmp_path / "anchor")], ["checkout", "refs/formulacode/commit"])
    for step in (*steps, ["fetch-history", str(tmp_path / "thin")], ["checkout"]):
        subprocess.run(["bash", str(script(step[0])), *step[1:]], env=variables, check=True)
    assert git(repository, "status", "--porcelain") == ""
    assert sorted(path.name for path in (repository / "docs").iterdir()) == ["index.rst"]
    assert (repository / "a.py").read_text() == "...\n"
    (repository / "a.py").write_text("changed\n")
    assert git(repository, "diff", "--name-only").split() == ["a.py"]
    git(repository, "add", "--all")
    assert git(repository, "diff", "--cached", "--name-only").split() == ["a.py"]


def drop_blob(mirror: Path, among: set[str], *, keep: str | None) -> None:
    """Lose one file's content: of those *among*, one that the commit *keep* does not hold."""
    kept = set(git(mirror, "ls-tree", "-r", "--object-only", keep).split()) if keep else set()
    for pack in (mirror / "objects" / "pack").glob("*.pack"):
        moved = mirror / pack.name
        pack.rename(moved)
        pack.with_suffix(".idx").unlink()
        with moved.open("rb") as content:
            subprocess.run(["git", "-C", str(mirror), "unpack-objects", "-q"], stdin=content, check=True)
    blobs = [
        sha for sha in sorted(among - kept) if len(sha) == 40 and git(mirror, "cat-file", "-t", sha).strip() == "blob"
    ]
    (mirror / "objects" / blobs[0][:2] / blobs[0][2:]).unlink()


def test_a_base_that_is_its_own_anchor_needs_no_bundle(pure: Sample, tmp_path: Path) -> None:
    write_bundle(pure.mirror, pure.base, tmp_path / "none", since=pure.base)
    assert (tmp_path / "none").read_bytes() == b""


def test_the_mirror_is_left_as_it_was(pure: Sample, tmp_path: Path) -> None:
    before = git(pure.mirror, "for-each-ref")
    write_bundle(pure.mirror, pure.base, tmp_path / "whole")
    assert git(pure.mirror, "for-each-ref") == before


def test_a_commit_that_the_mirror_lacks_is_the_items_failure(pure: Sample, tmp_path: Path) -> None:
    with pytest.raises(ItemFailure, match="failed in") as caught:
        write_bundle(pure.mirror, "f" * 40, tmp_path / "none")
    assert caught.value.kind == "mirror"


def test_ancestry_and_trees_are_read_from_the_mirror(pure: Sample) -> None:
    assert is_ancestor(pure.mirror, pure.anchor, pure.base)
    assert not is_ancestor(pure.mirror, pure.merge, pure.base)
    assert (
        tree_of(pure.mirror, pure.base)["tinypure/__init__.py"]
        != tree_of(pure.mirror, pure.merge)["tinypure/__init__.py"]
    )


@pytest.mark.parametrize("tag", ["v1.0", "1.2.3rc1", "networkx-2.4", "h11-0.9.0", "Release_2021_03_1", "v7", "2024"])
def test_release_tags_are_kept(tag: str) -> None:
    assert is_version_tag(tag)


@pytest.mark.parametrize("tag", ["test", "nightly", "before-refactoring", "stable"])
def test_stray_tags_are_not(tag: str) -> None:
    assert not is_version_tag(tag)
