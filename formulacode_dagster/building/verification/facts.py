"""Facts from one pass over an image's files: the evidence for the verifications."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from formulacode_dagster.building.engines.files import Area, ImageFile

from .leak_scan import Elsewhere
from .scan import Scan, SearchPatterns, is_scanned_system

SCANNED_BYTES = 16 * 1024 * 1024
"""Limit of one file in bytes: no longer text is read or searched."""

LEFT_OVER = ("logs/", "tmp/", "var/tmp/", "workspace/")
"""Folders for results."""

_CHUNK = 1024 * 1024
_OBJECT = re.compile(r"\.git/objects/([0-9a-f]{2}|pack)/[^/]+$")
_GIT_NAMES = re.compile(r"\.git/(?:[^/]+$|(?:logs|refs)/)")
"""Files in which a repository stores commit names: HEAD, ORIG_HEAD, packed-refs, branches and their logs."""
_COMPILED = re.compile(r"(?P<tagged>\.(cpython-[^/]+|abi3))?\.so$")
_PROGRAMS = frozenset(prefix + name for prefix in ("", "usr/", "usr/local/") for name in ("bin", "sbin"))


@dataclass(frozen=True)
class FileFact:
    """One file: its owner and content."""

    uid: int
    target: str | None
    sha256: str
    """As in a RECORD: urlsafe base64 without padding; empty for a link."""
    blob: str
    """Git's id of the content; of the target for a link."""
    unix_blob: str
    """Git's id after turning line ends into git's own, which a checkout may have changed."""
    is_extension: bool = False
    """True for a compiled module, as opposed to a library that others link to."""


@dataclass
class ImageFacts:
    """Files by area and path, and the text of the few that have to be read."""

    files: dict[Area, dict[str, FileFact]] = field(default_factory=lambda: {area: {} for area in Area})
    texts: dict[tuple[Area, str], str] = field(default_factory=dict)
    scan: Scan = field(default_factory=Scan)
    elsewhere: Elsewhere = field(default_factory=Elsewhere)

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


def gather_facts(files: Iterable[ImageFile], *, objects: Path, watch: SearchPatterns | None = None) -> ImageFacts:
    """Read *files* once, and search them for the items of *watch*.

    Git's object store is copied to the folder *objects*, the only thing that is kept on the host.
    """
    facts = ImageFacts(scan=Scan(watch or SearchPatterns()))
    for file in files:
        is_own_object = file.area is Area.REPOSITORY and file.target is None and _OBJECT.match(file.path)
        if not is_own_object:
            facts.elsewhere.look(file)
        if is_own_object:
            _copy(file, objects / file.path.removeprefix(".git/objects/"))
        elif file.area is not Area.SYSTEM or _is_telling(file.path):
            facts.files[file.area][file.path] = _read(file, facts)
        elif file.target is None and is_scanned_system(file.path, file.uid):
            with file.open() as stream:
                facts.scan.look(file, stream.read(SCANNED_BYTES))
    return facts


def _is_telling(path: str) -> bool:
    """Return True if a file of the system can change other programs: hashing all of /usr would add nothing."""
    folder, _, name = path.rpartition("/")
    return (
        folder in _PROGRAMS
        or path.startswith(("etc/ld.so", "etc/python", "etc/skel/", "home/", *LEFT_OVER))
        or name.startswith(("sitecustomize", "usercustomize"))
        or folder.endswith(("/sitecustomize", "/usercustomize"))
    )


def _read(file: ImageFile, facts: ImageFacts) -> FileFact:
    if file.area is Area.SYSTEM and file.target is None and file.path.rpartition("/")[0] in _PROGRAMS:
        return FileFact(file.uid, None, "", "", "")  # whose it is, is all that is asked of the system's programs
    if file.target is not None:
        blob = _blob(file.target.encode())
        return FileFact(file.uid, file.target, "", blob, blob)
    with file.open() as stream:
        content = stream.read()
    facts.scan.look(file, content)
    blob = unix_blob = _blob(content)
    if file.area is Area.REPOSITORY and b"\r\n" in content:
        unix_blob = _blob(content.replace(b"\r\n", b"\n"))
    if _is_read(file) and len(content) <= SCANNED_BYTES:
        facts.texts[file.area, file.path] = content.decode(errors="replace")
    encoded = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return FileFact(file.uid, None, encoded, blob, unix_blob, _is_extension(file.path, content))


def _is_extension(path: str, content: bytes) -> bool:
    match = _COMPILED.search(path)
    if match is None:
        return False
    stem = path.rpartition("/")[2].removesuffix(match[0])
    return match["tagged"] is not None or f"PyInit_{stem}\0".encode() in content


def _is_read(file: ImageFile) -> bool:
    name = file.path.rpartition("/")[2]
    return (
        name in ("RECORD", "METADATA", "pyvenv.cfg", "direct_url.json", "ld.so.preload")
        or name.endswith(".pth")
        or (file.area is Area.REPOSITORY and bool(_GIT_NAMES.match(file.path)))
    )


def _blob(content: bytes) -> str:
    digest = hashlib.sha1(b"blob %d\0" % len(content), usedforsecurity=False)
    digest.update(content)
    return digest.hexdigest()


def _copy(file: ImageFile, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with file.open() as stream, path.open("wb") as kept:
        while chunk := stream.read(_CHUNK):
            kept.write(chunk)
