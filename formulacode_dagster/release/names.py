"""Names that Docker and registries accept, from names that GitHub accepts."""

from __future__ import annotations

import hashlib
import re

MAX_NAME = 128
"""Longest tag a registry accepts; container names are kept as short."""

_FINGERPRINT = 8
_WORD = re.compile(r"[a-z0-9]+")
_COMPONENT = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")


def docker_name(name: str) -> str:
    """*name* as a container name, a tag or one component of an image's name.

    Names that differ by more than upper and lower case, which GitHub does not tell apart either, stay different: what
    has to be changed beyond case is marked with a fingerprint of the whole name.
    """
    lowered = name.lower()
    if _COMPONENT.fullmatch(lowered) and len(lowered) <= MAX_NAME:
        return lowered
    fingerprint = hashlib.sha256(lowered.encode()).hexdigest()[:_FINGERPRINT]
    words = "__".join("-".join(_WORD.findall(part)) or "x" for part in lowered.split("__"))
    return f"{words[: MAX_NAME - _FINGERPRINT - 1].rstrip('-_')}-{fingerprint}"
