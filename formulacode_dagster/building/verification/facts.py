"""Facts from one pass over an image's files: the evidence for the verifications."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from formulacode_dagster.building.engines.docker.session import USER
from formulacode_dagster.building.engines.files import RECORD_HASHES, Area, ImageFile

from .leak_scan import Elsewhere
from .scan import Scan, SearchPatterns, WordSearch, is_scanned_system

SCANNED_BYTES = 16 * 1024 * 1024
"""Bytes of one file that are kept and read as text; of the rest only hashes are computed, and secrets searched."""

TEXT_BYTES = 512 * 1024 * 1024
"""Limit of all texts of an image in bytes."""

LEFT_OVER = ("logs/", "tmp/", "var/tmp/", "workspace/")
"""Folders for results."""

_CHUNK = 1024 * 1024
_OBJECT = re.compile(r"\.git/objects/([0-9a-f]{2}|pack)/[^/]+$")
_GIT_NAMES = re.compile(r"\.git/(?!index$)(?:[^/]+$|(?:logs|refs)/)")
"""Files in which a repository stores commit names: HEAD, ORIG_HEAD, packed-refs, branches and their logs."""
_STARTUP_FILE = re.compile(r"lib/python3\.\d+/site-packages/[^/]+\.pth")
_COMPILED = re.compile(r"(?P<tagged>\.(cpython-[^/]+|abi3))?\.so$")
_BUILDER = int(USER.partition(":")[0])
_MAIL = "var/mail/"
"""Where some systems make an empty file for every user."""
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
    unread: set[tuple[Area, str]] = field(default_factory=set)
    """Files that have to be read and are too long."""
    text_bytes: int = 0

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
        elif file.area is not Area.SYSTEM or _is_telling(file):
            facts.files[file.area][file.path] = _read(file, facts)
        elif file.target is None and is_scanned_system(file.path, file.uid):
            words = WordSearch(facts.scan.secrets)
            facts.scan.look(file, _start_of(file, words.feed), words)
    return facts


def _is_telling(file: ImageFile) -> bool:
    """Return True if a file of the system can change other programs: hashing all of /usr would add nothing."""
    path = file.path
    folder, _, name = path.rpartition("/")
    return (
        (file.uid == _BUILDER and not path.startswith(_MAIL))
        or folder in _PROGRAMS
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
    sha256, sha1 = hashlib.sha256(), hashlib.sha1(b"blob %d\0" % file.size, usedforsecurity=False)
    compiled = _COMPILED.search(file.path)
    stem = file.path.rpartition("/")[2].removesuffix(compiled[0]) if compiled else ""
    entry = f"PyInit_{stem}\0".encode()
    words = WordSearch([*facts.scan.secrets, *([entry] if compiled else [])])
    start = _start_of(file, sha256.update, sha1.update, words.feed)
    facts.scan.look(file, start, words)
    blob = unix_blob = sha1.hexdigest()
    if file.area is Area.REPOSITORY and file.size <= SCANNED_BYTES and b"\r\n" in start:
        unix_blob = _blob(start.replace(b"\r\n", b"\n"))
    if _is_read(file):
        facts.text_bytes += file.size
        if file.size <= SCANNED_BYTES and facts.text_bytes <= TEXT_BYTES:
            facts.texts[file.area, file.path] = start.decode(errors="replace")
        else:
            facts.unread.add((file.area, file.path))
    encoded = base64.urlsafe_b64encode(sha256.digest()).rstrip(b"=").decode()
    is_extension = compiled is not None and (compiled["tagged"] is not None or entry in words.found)
    return FileFact(file.uid, None, encoded, blob, unix_blob, is_extension)


def _start_of(file: ImageFile, *readers: Callable[[bytes], object]) -> bytes:
    """The first SCANNED_BYTES of *file*; *readers* get all of it, part by part."""
    with file.open() as stream:
        start = part = stream.read(SCANNED_BYTES)
        while part:
            for read in readers:
                read(part)
            part = stream.read(_CHUNK)
    return start


def is_startup_file(area: Area, path: str) -> bool:
    """Return True for a `.pth` that the environment's interpreter reads: elsewhere the name stands for other things."""
    return area is Area.ENVIRONMENT and _STARTUP_FILE.fullmatch(path) is not None


def _is_read(file: ImageFile) -> bool:
    name = file.path.rpartition("/")[2]
    return (
        name in ("RECORD", "METADATA", "pyvenv.cfg", "direct_url.json", "ld.so.preload")
        or is_startup_file(file.area, file.path)
        or (file.area is Area.TOOLS and file.path == RECORD_HASHES)
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
