"""Redaction of trajectories and messages: credentials of this machine by value, those of others by their form."""

from __future__ import annotations

import re
from collections.abc import Mapping

from formulacode_dagster.operating.monitoring.secrets import HIDDEN, SecretFilter, secret_values

_FORMS = re.compile(
    r"\b(?:sk|pk|rk)-[A-Za-z0-9_-]{16,}"
    r"|\bgh[opusr]_[A-Za-z0-9]{20,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}"
    r"|\bhf_[A-Za-z0-9]{20,}|\bAIza[A-Za-z0-9_-]{30,}|\bxox[abprs]-[A-Za-z0-9-]{10,}"
    r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
    r"|(?<=[Bb]earer )[A-Za-z0-9._~+/-]{16,}=*"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----",
    re.DOTALL,
)
_ASSIGNED = re.compile(
    r"\b([A-Z0-9_]*(?:API_KEY|TOKEN|SECRET|PASSWORD|ACCESS_KEY))(\\?[\"']?\s*[=:]\s*\\?[\"']?)([^\s\"'\\,;}]{8,})"
)
"""`NAME_API_KEY=value`, also within JSON: agents print their environment."""


class Redaction:
    """Replaces secrets, and counts the places."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        """*environment* holds the credentials of this machine."""
        self._known = SecretFilter(secret_values(environment))

    def of(self, text: str) -> tuple[str, int]:
        """Return *text* without secrets, and how many places were redacted."""
        before = text.count(HIDDEN)
        text = self._known.without(text)
        text = _ASSIGNED.sub(rf"\1\2{HIDDEN}", text)
        text = _FORMS.sub(HIDDEN, text)
        return text, text.count(HIDDEN) - before

    def without(self, text: str) -> str:
        """Return *text* without secrets."""
        return self.of(text)[0]
