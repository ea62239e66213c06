"""What one pass over an image's files tells: the evidence behind the verifications."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from .files import Area, ImageFile

KEPT_BYTES = 1024 * 1024
_CHUNK = 1024 * 1024
_PROGRAMS = frozenset(prefix + name for prefix in ("", "usr/", "usr/local/") for name in ("bin", "sbin"))


@dataclass(frozen=True)
class FileFact:
    """One file: who owns it, what is in it."""

    uid: int
    executable: bool
    target: str | None
    sha256: str
    """As a RECORD writes it: urlsafe base64 without padding; empty for a link."""
    blob: str
    """Git's id of the content; of the target for a link."""
    unix_blob: str
    """Git's id after turning line ends into git's own, which a checkout may have changed."""


@dataclass
class ImageFacts:
    """Files by area and path, and the text of the few that have to be read."""

    files: dict[Area, dict[str, FileFact]] = field(default_factory=lambda: {area: {} for area in Area})
    texts: dict[tuple[Area, str], str] = field(default_factory=dict)

    @property
    def environment(self) -> Mapping[str, FileFact]:
        """Files of the virtual environment."""
        return self.files[Area.ENVIRONMENT]

    @property
    def checkout(self) -> dict[str, FileFact]:
        """Files of the checkout, without `.git`."""
        return {path: fact for path, fact in self.files[Area.REPOSITORY].items() if not path.startswith(".git/")}

    @property
    def head(self) -> str:
        """Content of `.git/HEAD`: the commit, since the checkout is detached."""
        return self.texts.get((Area.REPOSITORY, ".git/HEAD"), "").strip()


def gather_facts(files: Iterable[ImageFile], *, objects: Path) -> ImageFacts:
    """Read *files*; git's object store is copied to the folder *objects*, the only thing that is kept on the host."""
    facts = ImageFacts()
    for file in files:
        if file.area is Area.REPOSITORY and file.path.startswith(".git/objects/") and file.target is None:
            _copy(file, objects / file.path.removeprefix(".git/objects/"))
        elif file.area is not Area.SYSTEM or _is_telling(file.path):
            facts.files[file.area][file.path] = _read(file, facts)
    return facts


def _is_telling(path: str) -> bool:
    """Whether a file of the system can change what other programs do: hashing all of /usr would tell no more."""
    folder, _, name = path.rpartition("/")
    return (
        folder in _PROGRAMS
        or path.startswith(("etc/ld.so", "etc/python", "etc/skel/", "home/"))
        or name.startswith(("sitecustomize", "usercustomize"))
        or folder.endswith(("/sitecustomize", "/usercustomize"))
    )


def _read(file: ImageFile, facts: ImageFacts) -> FileFact:
    if file.area is Area.SYSTEM and file.target is None and file.path.rpartition("/")[0] in _PROGRAMS:
        return FileFact(file.uid, True, None, "", "", "")  # whose it is, is all that is asked of the system's programs
    if file.target is not None:
        blob = _blob([file.target.encode()], len(file.target.encode()))
        return FileFact(file.uid, False, file.target, "", blob, blob)
    with file.open() as stream:
        parts = []
        while chunk := stream.read(_CHUNK):
            parts.append(chunk)
    size = sum(map(len, parts))
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    blob = unix_blob = _blob(parts, size)
    if file.area is Area.REPOSITORY and any(b"\r\n" in part for part in parts):
        unix = b"".join(parts).replace(b"\r\n", b"\n")
        unix_blob = _blob([unix], len(unix))
    if _is_read(file) and size <= KEPT_BYTES * 16:
        facts.texts[file.area, file.path] = b"".join(parts).decode(errors="replace")
    encoded = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
    return FileFact(file.uid, bool(file.mode & 0o100), None, encoded, blob, unix_blob)


def _is_read(file: ImageFile) -> bool:
    name = file.path.rpartition("/")[2]
    return (
        name in ("RECORD", "METADATA", "pyvenv.cfg", "direct_url.json", "ld.so.preload")
        or name.endswith(".pth")
        or (file.area is Area.REPOSITORY and file.path.startswith(".git/") and file.path.count("/") == 1)
    )


def _blob(parts: Iterable[bytes], size: int) -> str:
    digest = hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def _copy(file: ImageFile, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with file.open() as stream, path.open("wb") as kept:
        while chunk := stream.read(_CHUNK):
            kept.write(chunk)
