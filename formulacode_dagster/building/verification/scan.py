"""Search patterns for the contents of files: values of secrets, forms of credentials, lines of the oracle.

The values themselves are never reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from formulacode_dagster.building.engines.files import CRATES_FOLDER, TESTS_FOLDER, Area, ImageFile

SHORTEST_SECRET = 8
LONGEST_WORD = 16
"""Characters of a plain word: `postgres` as a password says nothing about a file that speaks of Postgres."""

SHORTEST_LINE = 24
"""Length of a distinctive line in characters; shorter ones occur in any code."""

_SECRET_NAME = re.compile(r"TOKEN|SECRET|PASSWORD|PASSWD|API_?KEY|ACCESS_KEY|CREDENTIAL", re.IGNORECASE)
_USER_INFO = re.compile(r"://([^/\s:@]*):([^/\s@]+)@")
_FORMS: Mapping[str, tuple[tuple[bytes, ...], re.Pattern[bytes]]] = {
    "a GitHub token": (
        (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"github_pat_"),
        re.compile(rb"\b(gh[pousr]_[A-Za-z0-9]{36}|github_pat_[A-Za-z0-9_]{30})"),
    ),
    "a Hugging Face token": ((b"hf_",), re.compile(rb"\bhf_[A-Za-z0-9]{30}")),
    "a key of a model's endpoint": (
        (b"sk-",),
        re.compile(rb"\bsk-(ant-|proj-|svcacct-)?[A-Za-z0-9_-]{0,12}[A-Za-z0-9]{20}"),
    ),
    "an AWS key": ((b"AKIA", b"ASIA"), re.compile(rb"\b(AKIA|ASIA)[0-9A-Z]{16}\b")),
    "a Docker Hub token": ((b"dckr_pat_",), re.compile(rb"\bdckr_pat_[A-Za-z0-9_-]{20}")),
    "a token of a package index": ((b"pypi-AgE",), re.compile(rb"\bpypi-AgE[A-Za-z0-9_-]{30}")),
    "a private key": ((b"PRIVATE KEY-----",), re.compile(rb"-----BEGIN ([A-Z]+ )?PRIVATE KEY-----")),
    "an address with a password": (
        (b"://",),
        re.compile(rb"[a-z]://[^/\s:@\"'<>{}$]+:[^/\s:@\"'<>{}$]+@[A-Za-z0-9]"),
    ),
}
"""By name: words of which one must occur, which is cheaper to test, and the form."""
_OWN_FOLDERS = ("etc/", "home/", "mnt/", "opt/", "root/", "run/", "srv/", "tmp/", "var/", "workspace/", "logs/")
_DEBIANS = ("var/cache/", "var/lib/dpkg/", "var/lib/apt/", "etc/ssl/", "etc/ca-certificates")
_NOT_TEXT = b"\0"
_RECORDED_HASH = re.compile(rb"sha\d+=[A-Za-z0-9_-]{43,}")
"""Hashes in a RECORD: random characters, in which anything may seem to occur."""
_EDGE = b" \t\r+"


@dataclass(frozen=True)
class Secret:
    """A secret of this machine, and the variable that holds it."""

    name: str
    value: bytes = field(repr=False)


@dataclass(frozen=True)
class SearchPatterns:
    """Search patterns of one pass over an image."""

    secrets: tuple[Secret, ...] = ()
    lines: frozenset[bytes] = frozenset()
    package: str = ""
    """Folder of the package among the installed ones, `` for any: there the lines are looked for."""


class WordSearch:
    """Finds *words* in a stream that is too long to be kept."""

    def __init__(self, words: Iterable[bytes]) -> None:
        self.found: set[bytes] = set()
        self._missing = set(words)
        self._overlap = max(map(len, self._missing), default=1) - 1
        self._end = b""

    def feed(self, part: bytes) -> None:
        """Search the next part of the stream; a word may have begun in the one before."""
        if not self._missing:
            return
        part = self._end + part
        found = {word for word in self._missing if word in part}
        self.found |= found
        self._missing -= found
        self._end = part[max(0, len(part) - self._overlap) :]


@dataclass
class Scan:
    """Findings of the pass so far, by area and path."""

    watch: SearchPatterns = field(default_factory=SearchPatterns)
    credentials: dict[tuple[Area, str], list[str]] = field(default_factory=dict)
    lines: dict[tuple[Area, str], set[bytes]] = field(default_factory=dict)

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """Values to search for."""
        return tuple(secret.value for secret in self.watch.secrets)

    def look(self, file: ImageFile, content: bytes, words: WordSearch) -> None:
        """Look through the start of *file*, its *content*, and through the *words* that occur in all of it."""
        key = file.area, file.path
        secrets = [f"the value of {secret.name}" for secret in self.watch.secrets if secret.value in words.found]
        if _NOT_TEXT not in content[:8192]:
            if _may_tell_credentials(file):
                secrets += forms_in(content)
            if self.watch.lines and self._may_hold_lines(file):
                lines = self.watch.lines.intersection(line.strip(_EDGE) for line in content.split(b"\n"))
                if lines:
                    self.lines[key] = set(lines)
        if secrets:
            self.credentials[key] = secrets

    def _may_hold_lines(self, file: ImageFile) -> bool:
        if file.area is not Area.ENVIRONMENT:
            return not file.path.startswith(".git/objects/")
        _, installed, inside = file.path.partition("/site-packages/")
        return not installed or not self.watch.package or inside.partition("/")[0] == self.watch.package


def secrets_in(content: bytes, secrets: Iterable[Secret]) -> list[str]:
    """Return which of *secrets* occur in *content*, by the names of their variables."""
    return [f"the value of {secret.name}" for secret in secrets if secret.value in content]


def forms_in(content: bytes) -> list[str]:
    """Return parts of *content* in the form of a credential."""
    forms = {what: form for what, (words, form) in _FORMS.items() if any(word in content for word in words)}
    seen = [what for what, form in forms.items() if form.search(content)]
    if not seen:
        return []
    bare = _RECORDED_HASH.sub(b"", content)
    return [what for what in seen if forms[what].search(bare)]


def own_secrets(environment: Mapping[str, str]) -> tuple[Secret, ...]:
    """Return the secrets among the variables of *environment*: variables named like one, and passwords in addresses."""
    secrets: dict[bytes, str] = {}
    for name, value in environment.items():
        # a variable with a secret's path would make every mention of that file one
        parts = value.split(",") if _SECRET_NAME.search(name) and not name.endswith(("_PATH", "_FILE")) else []
        for _, password in _USER_INFO.findall(value):
            parts += [password, unquote(password)]
        for part in map(str.strip, parts):
            is_word = part.isdigit() or part.startswith("/") or (part.isalpha() and len(part) <= LONGEST_WORD)
            if len(part) >= SHORTEST_SECRET and not is_word:
                secrets.setdefault(part.encode(), name)
    return tuple(Secret(name, value) for value, name in secrets.items())


def telling_lines(added: Iterable[bytes]) -> frozenset[bytes]:
    """Return the distinctive ones of *added* lines: long enough, and made of words."""
    stripped = {line.strip(_EDGE) for line in added}
    return frozenset(
        line for line in stripped if len(line) >= SHORTEST_LINE and len(re.findall(rb"[A-Za-z]\w+", line)) > 1
    )


def is_scanned_system(path: str, uid: int) -> bool:
    """Return True if a file of the system is searched: those of Debian and of the interpreter are trusted."""
    return uid != 0 or (path.startswith(_OWN_FOLDERS) and not path.startswith(_DEBIANS))


def _may_tell_credentials(file: ImageFile) -> bool:
    """Return True if an apparent credential is one: files of the repository, of wheels and of crates hold specimens."""
    if file.area is Area.REPOSITORY:
        return file.path.startswith(".git/")
    if file.area is Area.ENVIRONMENT:
        return "/site-packages/" not in file.path or ".dist-info/" in file.path
    if file.area is Area.TOOLS and file.path.startswith(f"{TESTS_FOLDER}/"):
        # files that no wheel brought are reported as planted
        return ".dist-info/" in file.path
    return file.area is not Area.TOOLS or not file.path.startswith(f"{CRATES_FOLDER}/")
