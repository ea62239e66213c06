"""A second check of stored statements, from the stored facts and with separate code.

It shares with `gates` only the definition of a distinctive line, so a gap there is not a gap here.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from formulacode_dagster.models.problem import Leak, LeakKind, ProblemStatement
from formulacode_dagster.models.pull_request import LinkedIssue, MergedPullRequest
from formulacode_dagster.sources.markdown import prose

from .solution import base_lines, leaks, new_lines, new_names

_BOUND = re.compile(
    r"\b(?:def|class|cdef\s+\w+|import|as|for|fn|struct)\s+(?P<named>\w+)|^(?P<given>\w+)\s*(?::[^=]+)?=(?!=)"
)
_CALLED = re.compile(r"\b(\w{4,})\(")
_ENCODED = re.compile(r"[\w+/-]{20,}={0,2}", re.ASCII)
_ESCAPED = re.compile(r"(?:%[0-9A-Fa-f]{2}){4,}")
_URL = re.compile(r"\bhttps?://\S+")
_VARIABLE = re.compile(r"(?<![\w.])[^\W\d]\w*(?![\w(])")
_SHORTEST_SHAPE = 22
"""Characters of a line without blanks and names that is hardly written twice."""
_SHAPE_OF_PROSE = re.compile(r"[#x.,:;!?'\"-]+")
_TELLING = re.compile(r"\w_\w|[a-z][A-Z]")
_TO_CODE = re.compile(
    r"(?:github|gitlab|bitbucket|codeberg)\.\w+/\S*(?:/commits?/|/pulls?/|/compare/|/merge_requests/)|gist\.github",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"(?<![\w.+-])[\w.+-]++@[\w-]++\.[\w.]+")
_SENTENCE = re.compile(r"[.!?:]\s|\n\s*\n")
_LEAST_WORDS = 8
_LEAST_TITLE = 3
_SHORTEST_HASH = 7


def look_again(statement: ProblemStatement, facts: MergedPullRequest, patch: bytes) -> tuple[Leak, ...]:
    """Return the leaks of every variant of *statement*, from the stored data of its pull request."""
    variants = {
        "statement_minimal": statement.statement_minimal,
        "statement_issue": statement.statement_issue or "",
        "final_md": statement.final_md,
    }
    return look_at(variants, statement, facts, patch)


def look_at(
    texts: Mapping[str, str], statement: ProblemStatement, facts: MergedPullRequest, patch: bytes
) -> tuple[Leak, ...]:
    """Return the leaks of *texts*, by their names, as if they were variants of *statement*."""
    issues: Iterable[LinkedIssue] = facts.linked_issues if statement.walk is None else statement.walk.links
    later = statement.walk.later if statement.walk else ()
    before = " ".join(_squashed(f"{issue.title} {issue.body}") for issue in issues)
    known = {*statement.names_at_base, *re.findall(r"\w+", "\n".join(base_lines(patch)))}
    names = {name for name in _bound_names(patch) if _TELLING.search(name)} - known
    called = (set(_CALLED.findall("\n".join(new_lines(patch)))) & new_names(patch)) - known
    shapes = {shape for line in new_lines(patch) if len(shape := _shape(line)) >= _SHORTEST_SHAPE}
    at_base = _shape("\n".join(base_lines(patch)))
    shas = (facts.merge_commit_sha, facts.head_sha, *(commit.sha for commit in statement.commits))
    secrets = _Secrets(
        names,
        called,
        {shape for shape in shapes if shape not in at_base and not _SHAPE_OF_PROSE.fullmatch(shape)},
        before,
        texts=(
            (LeakKind.TITLE, _LEAST_TITLE, [facts.title]),
            (LeakKind.PROSE, _LEAST_WORDS, _sentences([facts.body, *(each.message for each in statement.commits)])),
            (LeakKind.LATER_COMMENT, _LEAST_WORDS, _sentences(each.body for each in later)),
        ),
        shas={sha[:_SHORTEST_HASH] for sha in shas if sha},
        people={name for commit in statement.commits for name in commit.people if " " in name},
    )
    return tuple(
        Leak(kind=kind, where=where, span=span)
        for where, text in texts.items()
        for kind, span in _told(text, facts, patch, secrets)
    )


@dataclass(frozen=True)
class _Secrets:
    names: set[str]
    called: set[str]
    shapes: set[str]
    before: str
    texts: tuple[tuple[LeakKind, int, list[str]], ...]
    """Kind, minimum words, and sentences that no text may quote."""
    shas: set[str]
    people: set[str]


def _told(text: str, facts: MergedPullRequest, patch: bytes, secrets: _Secrets) -> Iterator[tuple[LeakKind, str]]:
    yield from ((LeakKind.LINE, line) for line in leaks(text, patch, new_only=True))
    shape = _shape(text)
    yield from ((LeakKind.RENAMED_LINE, wanted) for wanted in sorted(secrets.shapes) if wanted in shape)
    yield from ((LeakKind.IDENTIFIER, name) for name in sorted(secrets.names & set(re.findall(r"\w+", text))))
    code = {*_CALLED.findall(text), *re.findall(r"\w+", "\n".join(re.findall(r"`+[^`]+`+", text)))}
    yield from ((LeakKind.IDENTIFIER, name) for name in sorted(secrets.called & code))
    yield from ((LeakKind.ENCODED, match[0]) for match in _ENCODED.finditer(text) if _hides(match[0]))
    yield from ((LeakKind.ENCODED, span) for span in _escaped(text, patch, secrets.names))
    squashed, lower = _squashed(text), text.casefold()
    for kind, least, sentences in secrets.texts:
        for sentence in sentences:
            plain = _squashed(sentence)
            if len(plain.split()) >= least and f" {plain} " in f" {squashed} " and plain not in secrets.before:
                yield kind, sentence.strip()
    yield from ((LeakKind.HASH, sha) for sha in sorted(secrets.shas) if sha in lower)
    yield from ((LeakKind.LINK, match[0]) for match in _TO_CODE.finditer(text))
    if match := re.search(rf"(?<![\w/-])#{facts.number}(?!\d)", text):
        yield LeakKind.LINK, match[0]
    plain = prose(text)
    yield from ((LeakKind.PERSON, match[0]) for match in _ADDRESS.finditer(plain))
    if facts.author and re.search(rf"@{re.escape(facts.author)}(?![\w-])", plain, re.IGNORECASE):
        yield LeakKind.PERSON, f"@{facts.author}"
    for name in sorted(secrets.people):
        spaced = r"\s+".join(map(re.escape, name.split()))
        if re.search(rf"(?<![\w/@.-]){spaced}(?![\w/-])", plain, re.IGNORECASE):
            yield LeakKind.PERSON, name


def _sentences(texts: Iterable[str]) -> list[str]:
    return [sentence for text in texts for sentence in _SENTENCE.split(prose(text))]


def _bound_names(patch: bytes) -> Iterator[str]:
    for line in new_lines(patch):
        yield from (match["named"] or match["given"] for match in _BOUND.finditer(line.partition("#")[0]))


def _shape(code: str) -> str:
    """*code* with one letter for every variable, whichever it is, and without blanks."""
    return re.sub(r"\s|[`>]", "", _VARIABLE.sub("x", code))


def _hides(span: str) -> bool:
    """Return True if *span* encodes text: readable when decoded."""
    for decode in (bytes.fromhex, lambda text: base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_")):
        try:
            decoded = decode(span.rstrip("="))
        except ValueError:
            continue
        if decoded.isascii() and decoded.decode().isprintable():
            return True
    return False


def _escaped(text: str, patch: bytes, names: set[str]) -> Iterator[str]:
    """Return what *text* says in the escapes of URLs; a URL may have them, and `%5d` is a format."""
    plain = unquote(text)
    if plain != text:
        yield from leaks(plain, patch, new_only=True)
        yield from sorted(names & set(re.findall(r"\w+", plain)))
    for match in _ESCAPED.finditer(_URL.sub(" ", text)):
        if re.search(r"\w", unquote(match[0])):
            yield match[0]


def _squashed(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))
