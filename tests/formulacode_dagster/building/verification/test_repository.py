"""Objects of an image, which nothing of the image vouches for."""

from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.building.verification import repository as module
from formulacode_dagster.building.verification.repository import ImageRepository
from formulacode_dagster.models.errors import ItemFailure
from tests.support.git_world import git


def test_an_object_that_would_fill_the_memory_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "OBJECT_BYTES", 1000)
    store = ImageRepository(tmp_path / "store.git")
    small, large = (git(store.folder, "hash-object", "-w", "--stdin", stdin=b"x" * size) for size in (1000, 1001))
    trees = [git(store.folder, "mktree", stdin=f"100644 blob {blob}\tfile\n".encode()) for blob in (small, large)]
    people = {f"GIT_{who}_{what}": "x@y" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    first, second = (git(store.folder, "commit-tree", "-m", "x", tree, **people) for tree in trees)
    try:
        assert store.read(first, "file") == b"x" * 1000
        with pytest.raises(ItemFailure, match=r"damaged at .*: .* has 1001 bytes"):
            store.read(second, "file")
        assert store.read(first, "file") == b"x" * 1000
    finally:
        store.close()
