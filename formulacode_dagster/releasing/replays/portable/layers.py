"""Unpacks the layers of an image into a folder, as an ordinary user: owners are lost, everything else stays."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import stat
import tarfile
from typing import TYPE_CHECKING, Any

from .contents import ArchiveRefusedError, Contents

if TYPE_CHECKING:
    from collections.abc import Callable

WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
MOST_LINKS = 40
OWNER = 1000
"""User of the image, whose folders a session may write to."""
MOUNT_POINTS = ("dev", "proc", "sys/devices/system", "tmp", "var/tmp", "opt/formulacode/harness")


class RootFileSystem:
    """An image unpacked into *folder*."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._owned: dict[str, bool] = {}

    @property
    def writable(self) -> list[str]:
        """Topmost folders that belong to the image's user, from the root."""
        found: list[str] = []
        for path in sorted(path for path, is_owned in self._owned.items() if is_owned):
            if not any(path.startswith(f"{other}/") for other in found) and os.path.isdir(f"{self.folder}/{path}"):
                found.append(path)
        return [f"/{path}" for path in found if not path.startswith(("tmp/", "var/tmp/"))]

    def unpack(self, contents: Contents, layers: list[dict[str, Any]], progress: Callable[[str], object]) -> None:
        """Unpack *layers* from the bottom; raises ArchiveRefusedError if one is no archive that is known here."""
        os.makedirs(self.folder)
        for number, layer in enumerate(layers, 1):
            progress(f"unpacking layer {number} of {len(layers)} ({layer['size'] / 1e6:.1f} MB)")
            try:
                with tarfile.open(contents.blob(layer["digest"]), mode="r:*") as archive:
                    self._apply(archive)
            except (tarfile.TarError, EOFError) as error:
                raise ArchiveRefusedError(f"layer {layer['digest']} cannot be unpacked: {error}") from error
        for name in MOUNT_POINTS:
            os.makedirs(f"{self.folder}/{name}", exist_ok=True)

    def _apply(self, archive: tarfile.TarFile) -> None:
        """Apply one layer. Whiteouts hide what layers below have, wherever they are in the archive."""
        added: set[str] = set()
        for entry in archive:
            name = os.path.normpath(entry.name.lstrip("/"))
            if name == "." or name.startswith(".."):
                continue
            parent, base = os.path.split(name)
            place = self._resolved(parent)
            if base == OPAQUE:
                for other in os.listdir(place):
                    if os.path.join(parent, other) not in added:
                        _remove(os.path.join(place, other))
                continue
            if base.startswith(WHITEOUT):
                _remove(os.path.join(place, base[len(WHITEOUT) :]))
                continue
            added.update(_ancestors(name))
            self._add(archive, entry, name, os.path.join(place, base))

    def _add(self, archive: tarfile.TarFile, entry: tarfile.TarInfo, name: str, path: str) -> None:
        if entry.isdir():
            if not os.path.isdir(path) or os.path.islink(path):
                _remove(path)
                os.makedirs(path)
            os.chmod(path, stat.S_IMODE(entry.mode) & 0o777 | stat.S_IRWXU)
            self._owned[name] = entry.uid == OWNER
            return
        if not (entry.isreg() or entry.issym() or entry.islnk()):
            return
        _remove(path)
        if entry.issym():
            os.symlink(entry.linkname, path)
        elif entry.islnk():
            folder, base = os.path.split(os.path.normpath(entry.linkname.lstrip("/")))
            os.link(os.path.join(self._resolved(folder), base), path, follow_symlinks=False)
        else:
            source = archive.extractfile(entry)
            if source is not None:
                with source, open(path, "wb") as target:
                    shutil.copyfileobj(source, target, 1 << 20)
            os.chmod(path, stat.S_IMODE(entry.mode) & 0o777 | stat.S_IRUSR)
            # bytecode names the time of its source
            os.utime(path, (entry.mtime, entry.mtime))

    def _resolved(self, folder: str) -> str:
        """Path of a folder of the image; its links lead nowhere else than into the image."""
        rest, inside, links = folder.split("/")[::-1] if folder else [], "", 0
        while rest:
            part = rest.pop()
            if part in ("", "."):
                continue
            if part == "..":
                inside = os.path.dirname(inside)
                continue
            path = f"{self.folder}/{inside}/{part}"
            if os.path.islink(path):
                links += 1
                if links > MOST_LINKS:
                    raise ArchiveRefusedError(f"{folder} of the image is a circle of links")
                target = os.readlink(path)
                inside = "" if target.startswith("/") else inside
                rest += target.split("/")[::-1]
                continue
            inside = f"{inside}/{part}".strip("/")
        place = f"{self.folder}/{inside}" if inside else self.folder
        os.makedirs(place, exist_ok=True)
        return place


def image_of(contents: Contents, digest: str) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Layers of the image with this manifest, from the bottom, and the variables of its configuration."""
    with open(contents.blob(digest), "rb") as file:
        manifest = json.load(file)
    with open(contents.blob(manifest["config"]["digest"]), "rb") as file:
        config = json.load(file)
    variables = dict(line.partition("=")[::2] for line in config.get("config", {}).get("Env") or ())
    return manifest["layers"], variables


def remove_tree(folder: str) -> None:
    """Remove *folder*, though parts of it may be locked."""
    for place, folders, _ in os.walk(folder):
        for name in folders:
            path = os.path.join(place, name)
            if not os.path.islink(path):
                with contextlib.suppress(OSError):
                    os.chmod(path, stat.S_IRWXU)
    shutil.rmtree(folder, ignore_errors=True)


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        remove_tree(path)
    elif os.path.lexists(path):
        os.unlink(path)


def _ancestors(name: str) -> list[str]:
    """*name* and the folders above it."""
    parts = name.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
