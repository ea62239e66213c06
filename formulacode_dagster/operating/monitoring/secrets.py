"""Redaction: no credential appears in a message, whatever error or log quoted it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import quote, unquote, urlsplit

HIDDEN = "***"
SHORTEST = 6
"""Shorter values occur in too many words to be recognized as secrets."""
_NAMES = re.compile(r"(TOKENS?|SECRET|PASSWORD|PASSWD|_KEY|CREDENTIALS?|HEADERS)$")
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+@")


class SecretFilter:
    """The texts to redact: each secret as it is, and URL-encoded."""

    def __init__(self, values: Iterable[str]) -> None:
        """*values* may be lists with commas, or URLs: then their parts, and the passwords in them, are secrets too."""
        secrets: set[str] = set()
        for value in values:
            parts = [part.strip() for part in value.split(",")]
            passwords = [unquote(urlsplit(part).password or "") for part in parts if "://" in part]
            for secret in (value, *parts, *passwords):
                secrets |= {secret, quote(secret, safe="")}
        # the longest first: a URL is hidden whole before its password is
        hidden = sorted((secret for secret in secrets if len(secret) >= SHORTEST), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, hidden))) if hidden else None

    def without(self, text: str) -> str:
        """*text* without any of them, and without the user and password of any URL."""
        if self._pattern is not None:
            text = self._pattern.sub(HIDDEN, text)
        return _USER_INFO.sub("", text)


def secret_values(environment: Mapping[str, str]) -> list[str]:
    """The values of the variables that are credentials by their names, whichever program they are for."""
    return [value for name, value in environment.items() if _NAMES.search(name.upper())]
