"""Leaks of a solution in a text, as far as rules can see them. They miss a mechanism in other words."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from formulacode_dagster.models.problem import Leak, LeakKind
from formulacode_dagster.sources.markdown import blocks, inline_code

from .anonymize import People
from .code_forms import Form, code_lines, forms_of, tokens_of
from .disguises import encoded_spans, other_readings
from .pointers import places_in, releases_in
from .solution import base_lines, leaks, new_lines, new_names, words_of
from .trails import Trails

RUN = 8
"""Tokens, or words, in a row that hardly are the same by chance."""
_LONGEST_SPAN = 120
_PARTICULAR_NAME = re.compile(r"_|\d|[a-z][A-Z]")
_INSTRUCTION = re.compile(
    r"\b(?:ignore|disregard|forget)\s+(?:all\s+|any\s+)?(?:of\s+)?(?:the\s+|your\s+)?(?:previous|prior|above|earlier|preceding)\s+"
    r"(?:instructions?|prompts?|rules?|directions?|directives?|orders?|guidelines?)\b"
    r"|\b(?:you\s+are|act\s+as)\s+(?:now\s+)?(?:a|an|the)\s+(?:judge|grader|reviewer|assistant|classifier|model)\b"
    r"|\b(?:label|mark|classify|report|judge)\s+(?:this|it|the\s+(?:text|statement|issue))\s+(?:as\s+)?[\"'`]?(?:none|clean|safe|fair)\b"
    r"|<\|[a-z_]{2,20}\|>|\[/?INST\]",
    re.IGNORECASE,
)
Run = tuple[str, ...]


@dataclass(frozen=True)
class WithheldText:
    """Everything of one pull request that a text must not reveal."""

    repository: str
    number: int
    patch: bytes
    title: str = ""
    texts: Sequence[str] = ()
    """Its body and the messages of its commits."""
    later_comments: Sequence[str] = ()
    shas: Sequence[str] = ()
    people: Sequence[str] = ()
    """Logins, real names and addresses, by which the people of the pull request are known."""
    names_at_base: frozenset[str] = field(default=frozenset())
    """Names that the patch adds and the base has elsewhere."""


class Gates:
    """Looks for one pull request's secrets in texts."""

    def __init__(self, secrets: WithheldText, *, earlier: Sequence[str] = ()) -> None:
        """*earlier* was written before the pull request: text that occurs there was not taken from its words."""
        self._secrets = secrets
        self._trails = Trails(secrets.repository, secrets.number, secrets.shas)
        self._earlier = _runs(earlier, RUN)
        self._earlier_words = [words_of(text) for text in earlier]

    def judge(self, text: str, where: str) -> list[Leak]:
        """Return every leak of *text*, each kind and span once; *where* is recorded as their place."""
        spans = {
            LeakKind.LINE: leaks(text, self._secrets.patch, new_only=True),
            LeakKind.RENAMED_LINE: self._renamed(text),
            LeakKind.CODE: self._shared(_runs([text], RUN, of=_code_tokens), self._code_runs, frozenset()),
            LeakKind.IDENTIFIER: self.new_names_in(text) - self._secrets.names_at_base,
            LeakKind.TITLE: self._title(text),
            LeakKind.PROSE: self._shared(_runs([text], RUN), self._prose_runs, self._earlier),
            LeakKind.LATER_COMMENT: self._shared(_runs([text], RUN), self._comment_runs, self._earlier),
            LeakKind.HASH: self._trails.hashes(text),
            LeakKind.LINK: self._trails.links(text),
            LeakKind.LOCATION: places_in(text, self._secrets.patch),
            LeakKind.RELEASE: releases_in(text),
            LeakKind.ENCODED: self._disguised(text),
            LeakKind.PERSON: self._people(text),
            LeakKind.INSTRUCTION: (match[0] for match in _INSTRUCTION.finditer(text)),
        }
        return [
            Leak(kind=kind, where=where, span=span[:_LONGEST_SPAN])
            for kind, found in spans.items()
            for span in sorted(dict.fromkeys(found))
        ]

    def solution_in(self, text: str) -> bool:
        """Return True if *text* has a line of the solution, also with other names, or a run of its code."""
        if leaks(text, self._secrets.patch, new_only=True) or any(self._renamed(text)):
            return True
        return not self._code_runs.isdisjoint(_runs([text], RUN, of=_code_tokens))

    def new_names_in(self, text: str) -> frozenset[str]:
        """The names that the patch adds and shows nowhere before, as far as *text* has them.

        A plain word such as `cache` counts only as code: in backticks, called, or as an attribute.
        """
        in_code = "\n".join(part for block in blocks(text) for part in _marked_as_code(block.text, fenced=block.fenced))
        code_words = {*re.findall(r"\w+", in_code), *re.findall(r"(?<=\w\.)\w+|\b\w++(?=\()", text)}
        words = {*re.findall(r"\w+", text)}
        return frozenset(
            name for name in self._new_names if name in (words if _PARTICULAR_NAME.search(name) else code_words)
        )

    def suspects_in(self, text: str) -> frozenset[str]:
        """Return the names that `judge` may object to in *text*, however it is read, unless the base knows them."""
        return frozenset[str]().union(*map(self.new_names_in, (text, *other_readings(text))))

    @functools.cached_property
    def _new_names(self) -> frozenset[str]:
        return new_names(self._secrets.patch)

    @functools.cached_property
    def _code_runs(self) -> frozenset[Run]:
        patch = self._secrets.patch
        return _runs(new_lines(patch), RUN, of=_code_tokens) - _runs(base_lines(patch), RUN, of=_code_tokens)

    @functools.cached_property
    def _added_forms(self) -> frozenset[Form]:
        return forms_of(new_lines(self._secrets.patch)) - forms_of(base_lines(self._secrets.patch))

    @functools.cached_property
    def _prose_runs(self) -> frozenset[Run]:
        return _runs([self._secrets.title, *self._secrets.texts], RUN)

    @functools.cached_property
    def _comment_runs(self) -> frozenset[Run]:
        return _runs(self._secrets.later_comments, RUN)

    def _renamed(self, text: str) -> Iterator[str]:
        added = self._added_forms
        return (line for line in code_lines(text) if added and forms_of([line]) & added)

    def _shared(self, runs: frozenset[Run], secret: frozenset[Run], excused: frozenset[Run]) -> Iterator[str]:
        return (" ".join(run) for run in islice(sorted((runs & secret) - excused), 1))

    def _title(self, text: str) -> Iterator[str]:
        title = words_of(re.sub(r"\(#\d+\)", "", self._secrets.title))
        if len(title) < 3 or sum(map(len, title)) < 12:
            return
        if _stands_in(title, words_of(text)) and not any(_stands_in(title, words) for words in self._earlier_words):
            yield self._secrets.title

    def _disguised(self, text: str) -> Iterator[str]:
        yield from encoded_spans(text)
        for other in other_readings(text):
            if other != text:
                yield from leaks(other, self._secrets.patch, new_only=True)
                yield from self.new_names_in(other) - self._secrets.names_at_base - self.new_names_in(text)

    def _people(self, text: str) -> Iterator[str]:
        """Return everything that another anonymization of *text* would still change."""
        without = People(self._secrets.people).anonymize(text)
        if without != text:
            after = set(without.split("\n"))
            yield from (line.strip() for line in text.split("\n") if line not in after)


def _marked_as_code(text: str, *, fenced: bool) -> list[str]:
    return [text] if fenced else inline_code(text)


def _code_tokens(text: str) -> list[str]:
    return [token.casefold() for token in tokens_of(text)]


def _runs(
    texts: Sequence[str] | frozenset[str], length: int, *, of: Callable[[str], list[str]] = words_of
) -> frozenset[Run]:
    """Return all runs of *length* that *of* reads in *texts*, except those of little more than signs and letters."""
    runs = (
        tuple(parts[start : start + length]) for parts in map(of, texts) for start in range(len(parts) - length + 1)
    )
    return frozenset(run for run in runs if sum(len(part) > 2 and part[0].isalpha() for part in run) >= 3)


def _stands_in(wanted: list[str], words: list[str]) -> bool:
    return any(words[start : start + len(wanted)] == wanted for start in range(len(words) - len(wanted) + 1))
