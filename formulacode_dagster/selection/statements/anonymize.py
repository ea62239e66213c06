"""Anonymization of texts. Code is left alone: `@property` is not a person, and `a@b` may be a matrix product."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable

from formulacode_dagster.sources.markdown import map_prose, map_unfenced

_DECORATORS = re.compile(
    r"property|(?:static|class|abstract)method|(?:cached_|lru_)?(?:property|cache)|n?jit|(?:gu)?vectorize|cuda|jitclass"
    r"|dataclass(?:es)?|overload|override|final|wraps|(?:async)?contextmanager|contextlib|singledispatch|total_ordering"
    r"|functools|numba|cython|profile|pytest|unittest|mock|param|parametrize|fixture|given|settings|setter|getter"
    r"|deprecated|register|typing|abc|atexit|enum|task|flow|asset|op",
    re.IGNORECASE,
)
"""Names after an `@` that are code even without markup."""

_EMAIL = re.compile(
    r"(?:(?P<name>[A-Z][\w.'-]{1,40}(?:[ \t][A-Z][\w.'-]{1,40}){1,4})[ \t])?"
    r"<?(?P<email>\b(?!git@)[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}\b)>?"
)
_MENTION = re.compile(r"(?<![\w`@.])@(?P<login>[A-Za-z0-9][A-Za-z0-9-]{0,38})(?:/[A-Za-z0-9._-]+)?(?![\w(])(?!\.\w)")
_PROFILE = re.compile(
    r"https?://(?:www\.|gist\.)?github\.com/(?P<login>[A-Za-z0-9-]+)(?P<rest>/[0-9a-f]{20,}[^\s)]*)?/?(?=[\s)\]>.,;]|$)",
    re.MULTILINE,
)
_MARKDOWN_PROFILE = re.compile(
    r"\[(?P<text>[^\]\n]{1,300})\]\(https?://(?:www\.)?github\.com/(?P<login>[A-Za-z0-9-]+)/?\)"
)
_PAGE = re.compile(
    r"(?<![\w.@/-])(?:https?://)?(?P<host>(?:[\w-]+\.)+[a-z]{2,})(?P<path>/[^\s)\]>]*)?",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(r"@user\d+")
_SHORTEST_PAGE = 5
"""Minimum letters of a name by which an address is recognized as a person's."""
_BELOW_HOME = re.compile(r"(?P<home>/home/|/Users/|\b[A-Za-z]:\\{1,2}Users\\{1,2})(?P<login>[\w.-]+)")
_NOT_PEOPLE = re.compile(r"runner|root|user|ubuntu|vsts|circleci|travis|work|public|shared", re.IGNORECASE)
_DECORATORS_ABOVE = re.compile(
    r"(?:^[ \t>]*@\S[^\n]*\n)++(?P<code>[ \t>]*(?:async def|def|class|cdef|cpdef)\b)?", re.MULTILINE
)
"""Lines that begin with an `@`: consumed whether code follows or not, since a second start would read them again."""


_SIGNED = re.compile(r"^[ \t]*[\w-]+-by:[ \t]*(?P<name>[^<\n]{1,100}?)[ \t]*<(?P<mail>[^>\n]{1,100})>", re.MULTILINE)


def signed_names(text: str) -> list[str]:
    """Names and addresses in the trailers of *text*, such as `Co-authored-by: Jane Doe <jane@acme.example>`."""
    return [part for match in _SIGNED.finditer(text) for part in (match["name"], match["mail"]) if part]


class People:
    """People found so far, with their placeholders. One per statement keeps its texts consistent."""

    def __init__(self, logins: Iterable[str] = ()) -> None:
        """*logins* are people known in advance, by login or name: they are recognized without markup too, unless they
        are plain words, and so are addresses with their name in it.
        """
        self._aliases: dict[str, str] = {}
        self._known = [login for login in dict.fromkeys(logins) if login]
        for login in self._known:
            self.alias(login)
        self._squashed = {squashed: login for login in self._known if len(squashed := _squash(login)) >= _SHORTEST_PAGE}
        self._bare = [r"\s+".join(map(re.escape, login.split())) for login in self._known if _is_particular(login)]

    def alias(self, who: str) -> str:
        """Return the placeholder of *who* (a login, a name, an address), `@user1` for the first."""
        return self._aliases.setdefault(who.casefold(), f"@user{len(self._aliases) + 1}")

    def anonymize(self, text: str) -> str:
        """Return *text* with people replaced: mentions, profile links, e-mail addresses, names next to them, known
        logins.

        Outside code only, but for home directories, whose owner is named in tracebacks.
        """
        text = map_unfenced(text, lambda part: _MARKDOWN_PROFILE.sub(lambda m: self.alias(m["login"]), part))
        text = map_prose(text, self._in_prose)
        return _BELOW_HOME.sub(self._below_home, text)

    def _in_prose(self, text: str) -> str:
        text = _PROFILE.sub(lambda match: self.alias(match["login"]), text)
        text = _PAGE.sub(self._page, text) if self._squashed else text
        text = _EMAIL.sub(self._address, text)
        code = [match.span() for match in _DECORATORS_ABOVE.finditer(text) if match["code"]]
        text = _MENTION.sub(lambda match: self._mention(match, code), text)
        if self._bare:
            known = rf"(?<![\w/@.-])(?:{'|'.join(self._bare)})(?![\w/-])"
            text = re.sub(known, lambda match: self.alias(" ".join(match[0].split())), text, flags=re.IGNORECASE)
        return text

    def _page(self, match: re.Match[str]) -> str:
        """An address whose host, or first folder, contains a known name."""
        first = (match["path"] or "").split("/")[1:2]
        where = [_squash(part) for part in (*match["host"].split("."), *first)]
        return next((self.alias(login) for name, login in self._squashed.items() if name in where), match[0])

    def _mention(self, match: re.Match[str], code: list[tuple[int, int]]) -> str:
        login = match["login"]
        above = bisect_right(code, match.start(), key=lambda span: span[0]) - 1
        is_code = bool(_DECORATORS.fullmatch(login)) or (above >= 0 and match.start() < code[above][1])
        is_placeholder = bool(_PLACEHOLDER.fullmatch(match[0]))
        return match[0] if is_code or is_placeholder else self.alias(login)

    def _address(self, match: re.Match[str]) -> str:
        alias = self.alias(match["name"] or match["email"])
        self._aliases.setdefault(match["email"].casefold(), alias)
        return alias

    def _below_home(self, match: re.Match[str]) -> str:
        return match[0] if _NOT_PEOPLE.fullmatch(match["login"]) else f"{match['home']}user"


def _squash(name: str) -> str:
    return re.sub(r"[\W_]", "", name).casefold()


def _is_particular(login: str) -> bool:
    """Return True if *login* is unlikely to be a plain word: a text may mention a `stack` that is nobody's login."""
    return len(login) >= 8 or (len(login) >= 4 and bool(re.search(r"[\dA-Z-]", login)))
