"""Credentials among the variables by which a package index is reached."""

from __future__ import annotations

import re
from collections.abc import Mapping

_USER_INFO = re.compile(r"(?:^|\s|://)[^/@\s]+@")
"""User, password or token of an address; a proxy's may lack the scheme."""
_SECRET_NAMES = ("_USERNAME", "_PASSWORD")


def has_credentials(variables: Mapping[str, str]) -> bool:
    """Return True if one of *variables* is a password or a user's name, or has an address with one."""
    return any(
        value and (name.upper().endswith(_SECRET_NAMES) or _USER_INFO.search(value))
        for name, value in variables.items()
    )
