"""Lines of a patch that reveal the solution."""

from __future__ import annotations

import functools
import html
import re
import unicodedata

from formulacode_dagster.models.paths import PathKind, kind_of
from formulacode_dagster.sources.git.diff import split_patch

_SOLUTION_KINDS = frozenset({PathKind.CORE, PathKind.CONFIGURATION, PathKind.OTHER})
_WORD = re.compile(r"\w+")
_CODE_SIGN = re.compile(r"[=()\[\]{}<>@*+/|;:\\]|\w\.\w|_")
_COMMENT_SIGN = re.compile(
    r"^(?:#+(?!\s*(?:include|define|undef|if|ifdef|ifndef|else|endif|pragma)\b)|//+|/\*+|\*+(?=\s)|\"\"\"|''')\s*"
)
_NO_CODE = re.compile(r"\"[^\"\n]*\"|'[^'\n]*'|(?:#|//)(?!\s*(?:include|define)\b).*")
"""Strings and comments of a line."""
_COMMON = re.compile(
    r"and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is"
    r"|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield|none|true|false|self|cls|int|float|str|list|dict|set"
    r"|tuple|bool|object|len|range|print|void|const|static|inline|double|char|long|unsigned|size_t|cp?def|np|numpy|pd"
    r"|pandas|os|sys|re|math|time|typing|annotations|__future__|__init__|__name__|__main__|[ijknxy]"
)


def words_of(text: str) -> list[str]:
    """The words of *text*, in lower case: letters, digits and underscores."""
    return _WORD.findall(text.casefold())


def changed_lines(patch: bytes, *, added_only: bool = False) -> frozenset[str]:
    """Return the lines of the solution, stripped, distinctive or not: those that *patch* adds to or removes from
    anything except tests, benchmarks, documentation and CI. The latter do not show how the code was made faster, and
    issues may quote them.
    """
    return frozenset(
        text
        for file in split_patch(patch)
        if kind_of(file.path) in _SOLUTION_KINDS and not file.binary
        for line in file.changed_lines()
        if (line.sign == "+" or not added_only) and (text := line.text.strip())
    )


@functools.lru_cache(maxsize=4)
def solution_lines(patch: bytes, *, new_only: bool = False) -> tuple[str, ...]:
    """Return the distinctive lines of the solution, sorted: those unlikely to occur in a text by chance.

    With *new_only*, those that the patch adds and neither moves nor shows as context: quoting the base reveals nothing.
    """
    # kept for a while: many texts are held against one patch
    lines = new_lines(patch) if new_only else changed_lines(patch)
    return tuple(sorted(line for line in lines if is_distinctive(line)))


def base_lines(patch: bytes) -> frozenset[str]:
    """Lines that stood in the changed files before, as far as *patch* shows them, stripped."""
    return frozenset(
        line[1:].strip()
        for file in split_patch(patch)
        if not file.binary
        for hunk in file.hunks()
        for line in hunk.lines
        if not line.startswith("+")
    )


def new_lines(patch: bytes) -> frozenset[str]:
    """Lines of the solution that *patch* adds, and does not move or show as they were."""
    return changed_lines(patch, added_only=True) - base_lines(patch)


def new_names(patch: bytes) -> frozenset[str]:
    """Return identifiers of four letters and more that *patch* adds, outside comments and strings, and does not show as
    they were; only the base knows whether it has them elsewhere.
    """
    before = {name for line in base_lines(patch) for name in _WORD.findall(line)}
    added = {name for line in new_lines(patch) for name in _WORD.findall(_NO_CODE.sub(" ", line))}
    return frozenset(name for name in added - before if _is_name(name))


def _is_name(word: str) -> bool:
    return len(word) >= 4 and not word[0].isdigit() and not _COMMON.fullmatch(word.casefold())


def is_distinctive(line: str) -> bool:
    """Return True if *line* is long and specific enough that an occurrence elsewhere means it was copied.

    Code needs three words and twelve characters (or five words and six), not all of them keywords and idioms; a
    sentence of a comment or docstring needs six words and thirty characters, since prose repeats itself.
    """
    bare = _COMMENT_SIGN.sub("", line.strip())
    words = words_of(bare)
    size = sum(len(word) for word in words)
    if bare != line.strip() or not _CODE_SIGN.search(bare):
        return len(words) >= 6 and size >= 30
    particular = sum(len(word) for word in words if not _COMMON.fullmatch(word))
    return particular >= 4 and ((len(words) >= 3 and size >= 12) or (len(words) >= 5 and size >= 6))


def leaks(text: str, patch: bytes, *, new_only: bool = False) -> tuple[str, ...]:
    """Return the distinctive lines of the solution that *text* contains, however quoted, wrapped, spaced or escaped.

    With *new_only*, those of `solution_lines` so called.

    It shares with `leak_guard.Solution` only the definition of a distinctive line, not the search: the text is reduced
    to its words and searched as one string.
    """
    plain = html.unescape(unicodedata.normalize("NFKC", text)).replace("\\", "")
    plain = "".join(character for character in plain if unicodedata.category(character) != "Cf")
    starts: set[int] = set()
    ends: set[int] = set()
    squashed, length = [], 0
    for word in words_of(plain):
        starts.add(length)
        squashed.append(word)
        length += len(word)
        ends.add(length)
    whole = "".join(squashed)
    lines = solution_lines(patch, new_only=new_only)
    return tuple(line for line in lines if _stands_in("".join(words_of(line)), whole, starts, ends))


def _stands_in(needle: str, whole: str, starts: set[int], ends: set[int]) -> bool:
    at = whole.find(needle)
    while at >= 0:
        if at in starts and at + len(needle) in ends:
            return True
        at = whole.find(needle, at + 1)
    return False
