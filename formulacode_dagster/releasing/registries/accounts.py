"""Authentication with a registry: account, and the answer to its challenge (distribution: "Token Authentication")."""

from __future__ import annotations

import base64
import re
import threading
from dataclasses import dataclass, field

import httpx

from formulacode_dagster.models.errors import ConfigurationError

CREDENTIALS = "Set DOCKERHUB_USERNAME and DOCKERHUB_TOKEN to an account that may push to DOCKERHUB_NAMESPACE"
_PARAMETER = re.compile(r'\b(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Credentials:
    """A user and its secret; both empty for anonymous access."""

    username: str = ""
    password: str = field(default="", repr=False)

    @property
    def for_daemon(self) -> dict[str, str]:
        """In docker-py's form; empty, not None, with which it would look into `~/.docker/config.json`."""
        return {"username": self.username, "password": self.password} if self.username else {}

    @property
    def basic(self) -> str:
        """The value of a header `Authorization`; empty for a stranger."""
        text = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        return f"Basic {text}" if self.username else ""

    def clean(self, text: str) -> str:
        """Return *text* in one line of at most 400 characters, without the password."""
        flat = " ".join(text.split())
        return (flat.replace(self.password, "[password]") if self.password else flat)[:400]


class Account:
    """An account whose password stays the same, in a registry that makes repositories as they are pushed to."""

    def __init__(self, username: str = "", password: str = "") -> None:
        self._credentials = Credentials(username, password)

    def credentials(self) -> Credentials:
        """Return the current secret."""
        return self._credentials

    def path_of(self, path: str) -> str:
        """*path*, which Docker accepts, as this registry names the repository."""
        return path

    def prepare(self, repository: str) -> None:
        """Make *repository*, a path below the registry's host, ready to be pushed to."""


STRANGER = Account()
"""Whoever has no account."""


class Authorization:
    """The header that a registry asks for, by scope; tokens are kept until it refuses them. Safe between threads."""

    def __init__(self, http: httpx.Client, account: Account) -> None:
        self._http = http
        self._account = account
        self._headers: dict[str, str] = {}
        self._lock = threading.Lock()

    def header(self, scope: str) -> str:
        """Return the last answer to *scope*; empty before a challenge."""
        with self._lock:
            return self._headers.get(scope, "")

    def answer(self, challenge: str, scope: str) -> str:
        """Return the header for `WWW-Authenticate: challenge` of *scope*; empty if there is no answer to it.

        Raises ConfigurationError if the registry's authority refuses the account, httpx.HTTPError if it is dead.
        """
        kind, _, rest = challenge.partition(" ")
        header = ""
        if kind.lower() == "basic":
            header = self._account.credentials().basic
        elif kind.lower() == "bearer":
            header = self._token(dict(_PARAMETER.findall(rest)), scope)
        with self._lock:
            self._headers[scope] = header
        return header

    def _token(self, parameters: dict[str, str], scope: str) -> str:
        realm = parameters.get("realm", "")
        asked = {"service": parameters.get("service", ""), "scope": scope}
        basic = self._account.credentials().basic
        answer = self._http.get(realm, params=asked, headers={"Authorization": basic} if basic else {})
        if answer.status_code in (400, 401, 403):
            if not basic:
                return ""
            raise ConfigurationError(
                f"{httpx.URL(realm).host} gives us no token for {scope}",
                why=f"HTTP {answer.status_code}",
                remedy=CREDENTIALS,
            )
        answer.raise_for_status()
        try:
            told = answer.json()
            return f"Bearer {told.get('token') or told['access_token']}"
        except (ValueError, AttributeError, LookupError) as error:
            what = f"{httpx.URL(realm).host} answers something other than a token"
            raise httpx.DecodingError(what, request=answer.request) from error
