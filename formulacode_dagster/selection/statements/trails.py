"""Trails from a text to a solution: links to code hosts, and commit hashes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

LINK_WITHHELD = "[link withheld]"
COMMIT_WITHHELD = "[commit withheld]"

_CODE_HOSTS = (
    r"(?:[\w-]+\.)*(?:github\.com|gitlab\.com|bitbucket\.org|codeberg\.org|sr\.ht|gitea\.com|ghe\.com"
    # an Enterprise Server by its usual name
    r"|github\.(?!com\b|io\b|dev\b)[\w-]+(?:\.[\w-]+)*)"
)
_PASTES = re.compile(
    r"(?:^|\.)(?:gist\.github(?:usercontent)?\.com|(?:raw|patch-diff)\.githubusercontent\.com|pastebin\.com|paste\.\w.*"
    r"|dpaste\.(?:org|com)|hastebin\.com|bpa\.st|codepile\.net|ideone\.com|godbolt\.org|githubusercontent\.com)$"
)
_SHORTENERS = (
    r"(?:bit\.ly|git\.io|t\.co|goo\.gl|tinyurl\.com|is\.gd|ow\.ly|rb\.gy|cutt\.ly|shorturl\.at|gitee\.com|pypi\.org)"
)
_URL = re.compile(
    r"(?:\b(?:(?:git|hg|svn)\+)?(?:https?|git|ssh|svn|hg|ftps?)://|\bgit@"
    rf"|(?<![\w/.@-])(?=(?:{_CODE_HOSTS}|{_SHORTENERS})/))[^\s<>()\[\]\"'`]+",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"(?<![\w.-])(?:(?:docs?|documentation|manual|help|www\.docs)\.[\w.-]+|[\w-]+\.readthedocs\.(?:io|org)"
    r"|(?:[\w-]+\.)*(?:python|numpy|scipy|scikit-learn|pytorch|tensorflow|llvm|gnu|kernel|apache|mozilla|w3|ietf)\.org"
    r"|pandas\.pydata\.org|(?:[\w-]+\.)*(?:wikipedia|arxiv|doi|acm|ieee|netlib|cppreference|postgresql)\.org"
    r"|(?:[\w-]+\.)*(?:stackoverflow|stackexchange|superuser|askubuntu)\.com|learn\.microsoft\.com|developer\.\w+\.com"
    # names and addresses that are nobody's
    r"|localhost|127\.\d+\.\d+\.\d+|(?:[\w-]+\.)*(?:example(?:\.(?:com|org|net))?|test|invalid|localhost|internal))",
)
"""Hosts to which any link may lead; one to an unknown host may lead to the solution by any number of steps."""
_MARKDOWN_LINK = re.compile(r"\[(?P<text>[^\]\n]{0,300})\]\((?P<url>[^)\s]+)[^)\n]{0,300}\)")
_HOST = re.compile(rf"(?<![\w.-]){_CODE_HOSTS}", re.IGNORECASE)
_HASH = re.compile(r"(?<![\w/.-])(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}(?![\w-])")
_HEX_RUN = re.compile(r"[0-9a-f]{7,40}", re.IGNORECASE)
_AT_COMMIT = re.compile(r"(?<![\w./-])[\w-]{1,100}/[\w.-]{1,100}@[0-9a-f]{7,40}\b")


@dataclass(frozen=True)
class Trails:
    """Trails to the pull request *number* of *repository*, whose commits are *shas*."""

    repository: str
    number: int
    shas: Sequence[str] = ()

    def links(self, text: str) -> Iterator[str]:
        """Links to commits, comparisons, pull requests, forks, files on a code host, and unknown hosts, such as
        gists, pastes, mirrors and short links; references to the pull request itself.
        """
        yield from (match[0] for match in _URL.finditer(text) if self._leads_to_code(match[0]))
        yield from (match[0] for match in _AT_COMMIT.finditer(text))
        yield from (match[0] for match in self._reference.finditer(text))

    def hashes(self, text: str) -> Iterator[str]:
        """Return everything that looks like a commit hash, and any prefix of *shas*, anywhere in the text."""
        seen = dict.fromkeys(match[0] for match in _HASH.finditer(text))
        ours = (match[0] for match in _HEX_RUN.finditer(text) if self._is_ours(match[0]))
        yield from dict.fromkeys((*seen, *ours))

    def without(self, text: str) -> str:
        """*text* with a mark in the place of each."""
        text = _MARKDOWN_LINK.sub(lambda match: match["text"] if self._leads_to_code(match["url"]) else match[0], text)
        text = _URL.sub(lambda match: LINK_WITHHELD if self._leads_to_code(match[0]) else match[0], text)
        text = self._reference.sub(LINK_WITHHELD, _AT_COMMIT.sub(COMMIT_WITHHELD, text))
        text = _HASH.sub(COMMIT_WITHHELD, text)
        return _HEX_RUN.sub(lambda match: COMMIT_WITHHELD if self._is_ours(match[0]) else match[0], text)

    @property
    def _reference(self) -> re.Pattern[str]:
        reference = rf"(?:(?:{re.escape(self.repository)})?#|\bGH-){self.number}\b"
        return re.compile(rf"\({reference}\)|(?<![\w/]){reference}", re.IGNORECASE)

    def _is_ours(self, text: str) -> bool:
        return any(sha.startswith(text.lower()) for sha in self.shas)

    def _leads_to_code(self, url: str) -> bool:
        plain = url.lower().rstrip(".,;:!?").replace("git@", "ssh://git@", 1)
        parts = urlsplit(re.sub(r"(?<=@)([^/:]+):", r"\1/", plain) if "://" in plain else f"https://{plain}")
        host = (parts.netloc.rpartition("@")[2]).partition(":")[0]
        if not _HOST.fullmatch(host) or _PASTES.search(host):
            return not _HARMLESS.fullmatch(host)
        owner, _, rest = parts.path.strip("/").partition("/")
        name, _, rest = rest.partition("/")
        if re.fullmatch(r"(?:issues|discussions)/\d+(?:/.*)?", rest):
            return f"{owner}/{name}" == self.repository.lower() and rest.split("/")[1] == str(self.number)
        is_fork = name.removesuffix(".git") == self.repository.lower().partition("/")[2]
        return bool(rest) or "@" in name or (is_fork and f"{owner}/{name}" != self.repository.lower())
