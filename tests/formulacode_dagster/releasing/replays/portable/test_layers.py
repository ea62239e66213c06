"""Layers as registries have them, unpacked like a container's runtime does."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path
from typing import Any

import pytest

from formulacode_dagster.releasing.replays.portable.contents import ArchiveRefusedError
from formulacode_dagster.releasing.replays.portable.layers import RootFileSystem, remove_tree

Entry = tuple[str, dict[str, Any], bytes]


def folder(name: str, **fields: Any) -> Entry:
    return name, {"type": tarfile.DIRTYPE, "mode": 0o755, **fields}, b""


def file(name: str, content: bytes = b"", **fields: Any) -> Entry:
    return name, {"mode": 0o644, **fields}, content


def link(name: str, target: str, **fields: Any) -> Entry:
    return name, {"type": tarfile.SYMTYPE, "linkname": target, **fields}, b""


class Blobs:
    """Layers in a folder, by number."""

    def __init__(self, place: Path) -> None:
        self._place = place

    def blob(self, digest: str) -> str:
        return str(self._place / digest)

    def add(self, digest: str, entries: list[Entry]) -> dict[str, Any]:
        with tarfile.open(self._place / digest, "w:gz") as archive:
            for name, fields, content in entries:
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                for field, value in fields.items():
                    setattr(entry, field, value)
                archive.addfile(entry, io.BytesIO(content))
        return {"digest": digest, "size": 1}


@pytest.fixture
def unpack(tmp_path: Path):
    def unpack(*layers: list[Entry]) -> tuple[RootFileSystem, Path]:
        blobs = Blobs(tmp_path)
        root = RootFileSystem(str(tmp_path / "root"))
        root.unpack(blobs, [blobs.add(str(number), entries) for number, entries in enumerate(layers)], print)
        return root, tmp_path / "root"

    return unpack


def test_a_file_of_a_higher_layer_replaces_the_one_below(unpack) -> None:
    _, root = unpack([folder("etc"), file("etc/a", b"one"), link("etc/b", "a")], [file("etc/a", b"two"), file("etc/b")])
    assert (root / "etc" / "a").read_bytes() == b"two"
    assert not (root / "etc" / "b").is_symlink()


def test_whiteouts_hide_files_folders_and_all_that_a_folder_had(unpack) -> None:
    below = [folder("a"), file("a/gone"), file("a/kept"), folder("b"), folder("b/c"), file("b/c/d"), file("b/old")]
    above = [file("a/.wh.gone"), file("b/new"), file("b/.wh..wh..opq"), file("b/.wh.c")]
    _, root = unpack(below, above)
    assert {path.name for path in (root / "a").iterdir()} == {"kept"}
    assert {path.name for path in (root / "b").iterdir()} == {"new"}


def test_times_modes_and_hard_links_stay(unpack) -> None:
    hard = ("bin/two", {"type": tarfile.LNKTYPE, "linkname": "bin/one"}, b"")
    _, root = unpack([folder("bin"), file("bin/one", b"#!", mode=0o4755, mtime=1_000_000), hard])
    one = (root / "bin" / "one").stat()
    # bytecode names the time of its source; nothing is set-uid here
    assert (one.st_mtime, one.st_mode & 0o7777, one.st_nlink) == (1_000_000, 0o755, 2)


def test_links_of_an_image_lead_nowhere_else_than_into_it(unpack, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    up = "../" * 20 + str(outside).lstrip("/")
    _, root = unpack(
        [link("lib", "/usr/lib"), link("away", str(outside)), link("up", up)],
        [file("lib/a"), file("away/b"), file("up/c"), file("../../d"), file("/e")],
    )
    assert list(outside.iterdir()) == []
    assert (root / "usr" / "lib" / "a").exists()
    assert (root / "e").exists()
    assert not (tmp_path / "d").exists()


def test_a_circle_of_links_is_refused(unpack) -> None:
    with pytest.raises(ArchiveRefusedError, match="circle of links"):
        unpack([link("a", "b"), link("b", "a"), file("a/c")])


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "0").write_bytes(b"no archive")
    with pytest.raises(ArchiveRefusedError, match="layer 0 cannot be unpacked"):
        RootFileSystem(str(tmp_path / "root")).unpack(Blobs(tmp_path), [{"digest": "0", "size": 1}], print)


def test_folders_of_the_images_user_may_be_written_to(unpack) -> None:
    root, _ = unpack(
        [
            *(folder(name, uid=1000) for name in ("opt/venv", "opt/venv/lib", "workspace", "tmp/build")),
            *(folder(name) for name in ("opt", "usr")),
        ]
    )
    assert root.writable == ["/opt/venv", "/workspace"]


def test_locked_folders_are_removed(tmp_path: Path) -> None:
    locked = tmp_path / "a" / "b"
    locked.mkdir(parents=True)
    (locked / "c").touch()
    locked.chmod(0)
    remove_tree(str(tmp_path / "a"))
    assert not (tmp_path / "a").exists()
