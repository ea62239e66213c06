"""References to issues and pull requests in a text, as GitHub links them.

https://docs.github.com/en/get-started/writing-on-github/working-with-advanced-formatting/autolinked-references-and-urls
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from formulacode_dagster.sources.markdown import prose

LONGEST_TEXT = 262_144
"""GitHub's maximum length of a body; anything longer is not read."""
LARGEST_NUMBER = 2**31 - 1
"""GraphQL's `Int` ends there, and one argument beyond it refuses the whole query."""
COLOUR_DIGITS = 6

_OWNER = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})"
_REPOSITORY = rf"{_OWNER}/[\w.-]{{1,100}}?"
_NUMBER = r"[1-9]\d{0,9}"
_ENDS = r"(?![\w@]|\.\d)"
_PUBLIC_HOST = "github.com"
_PATTERN = (
    rf"(?<![\w.@/-])(?:https?://)?(?:www\.)?HOST/(?P<page>{_REPOSITORY})/(?:issues|pulls?)/(?P<paged>{_NUMBER})"
    rf"(?!\w)[^\s<>\"'()\[\]]*"
    rf"|https?://[^\s<>\"'()\[\]]+"
    rf"|(?<![\w./@#-])(?P<repository>{_REPOSITORY})\#(?P<named>{_NUMBER}){_ENDS}"
    rf"|(?<![\w./#-])GH-(?P<numbered>{_NUMBER}){_ENDS}(?!-)"
    rf"|(?<![\w/&\#\\@])\#(?P<bare>{_NUMBER}){_ENDS}"
)
_PREFORMATTED = re.compile(r"<(?P<tag>pre|code|style)\b[^<>]{0,300}>[\s\S]*?(?:</(?P=tag)\s*>|\Z)", re.IGNORECASE)
_TAG = re.compile(r"</?(?!https?:)[A-Za-z][^<>]{0,1000}>")
_ADDRESS = re.compile(r"https?://[^\s<>\"']+")
_LINK = re.compile(r"\[[^\[\]\n]{0,300}\]\((?P<target>[^()\s]{0,1000})[^()\n]{0,300}\)")
_LOCAL = r"[\w.+%#&/=-]"
_EMAIL = re.compile(rf"(?<!{_LOCAL}){_LOCAL}{{1,80}}@[\w-]{{1,63}}(?:\.[\w-]{{1,63}}){{1,8}}", re.ASCII)
_FILE = re.compile(
    r"\.(?:md|rst|txt|html?|css|json|toml|ya?ml|cfg|ini|ipynb|csv|c|h|cpp|hpp|pyx|pxd|sh|xml|svg|png)$", re.IGNORECASE
)
_FOLDER = re.compile(r"(?:src|lib|docs?|tests?|asv_bench|benchmarks?|examples?|scripts?|tools|bin)/.", re.IGNORECASE)
_PHRASE = re.compile(r"and/or|n/a|w/o|i/o|ci/cd|tcp/ip|yes/no|on/off|he/she|true/false|[\d-]+/[\d.-]+", re.IGNORECASE)


@lru_cache(maxsize=8)
def _pattern(host: str) -> re.Pattern[str]:
    return re.compile(_PATTERN.replace("HOST", re.escape(host)), re.IGNORECASE | re.ASCII)


@dataclass(frozen=True, slots=True, order=True)
class ThreadReference:
    """An issue or pull request by name; only GitHub knows which of the two, and whether it exists."""

    repository: str
    number: int

    @property
    def key(self) -> tuple[str, int]:
        """Equal for two spellings of the same name: GitHub's names know no case."""
        return self.repository.lower(), self.number

    def __str__(self) -> str:
        return f"{self.repository}#{self.number}"


def references_in(
    text: str, repository: str, *, reached: int = 0, host: str = _PUBLIC_HOST
) -> tuple[ThreadReference, ...]:
    """Return the references of *text*, written in *repository* (`owner/repo`) of *host*: each once, in order.

    `#12`, `GH-12`, `owner/repo#12` and pages of issues and pull requests, with any anchor. Excluded are references in
    code, HTML comments, tags or e-mail addresses, escaped ones, texts of links to other places, paths and phrases that
    only look like a repository (`docs/index.md#3`, `and/or#2`), and colours: six digits are a colour unless the
    repository's numbers reach that far, which *reached*, the number of the thread with the text, shows.
    """
    references: dict[tuple[str, int], ThreadReference] = {}
    for reference in _scan(_bare(text[:LONGEST_TEXT]), repository, reached, host):
        if reference.number <= LARGEST_NUMBER:
            references.setdefault(reference.key, reference)
    return tuple(references.values())


def _bare(text: str) -> str:
    """*text* with everything masked in which GitHub links nothing."""
    text = _PREFORMATTED.sub(" ", prose(text))
    text = _TAG.sub(lambda match: f" {' '.join(_ADDRESS.findall(match[0]))} ", text)
    text = _LINK.sub(lambda match: f" {match['target']} " if match["target"].startswith("http") else " ", text)
    return _EMAIL.sub(" ", text)


def _scan(text: str, home: str, reached: int, host: str) -> Iterator[ThreadReference]:
    for match in _pattern(host).finditer(text):
        if match["page"] and _is_name(match["page"]):
            yield ThreadReference(match["page"], int(match["paged"]))
        elif match["repository"]:
            if _is_name(match["repository"]) and _is_plausible(match["repository"], home):
                yield ThreadReference(match["repository"], int(match["named"]))
        elif match["numbered"]:
            yield ThreadReference(home, int(match["numbered"]))
        elif match["bare"] and (len(match["bare"]) < COLOUR_DIGITS or len(match["bare"]) <= len(str(reached))):
            yield ThreadReference(home, int(match["bare"]))


def _is_name(repository: str) -> bool:
    owner, _, name = repository.partition("/")
    return not owner.endswith("-") and "--" not in owner and name not in (".", "..") and not name.endswith(".git")


def _is_plausible(repository: str, home: str) -> bool:
    if repository.partition("/")[0].lower() == home.partition("/")[0].lower():
        return True
    return not (_FILE.search(repository) or _FOLDER.match(repository) or _PHRASE.fullmatch(repository))
