"""Names that Docker and registries accept, from names that GitHub accepts."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from formulacode_dagster.models.errors import ConfigurationError

MAX_NAME = 128
"""Longest tag a registry accepts; container names are kept as short."""

_FINGERPRINT = 8
_WORD = re.compile(r"[a-z0-9]+")
_COMPONENT = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")


_IMAGE = re.compile(
    r"(?:(?P<host>localhost(?=[:/])(?::\d+)?|[a-z0-9.-]+(?:\.[a-z0-9-]+|:\d+))/)?"
    r"(?P<path>[a-z0-9]+(?:[._/-]+[a-z0-9]+)*)(?::(?P<tag>[\w][\w.-]*))?(?:@(?P<digest>sha256:[0-9a-f]{64}))?"
)


@dataclass(frozen=True)
class ImageName:
    """An image as people and Docker write it: `host/namespace/repository:tag@sha256:…`."""

    host: str
    """Empty for Docker Hub."""
    path: str
    version: str
    """The digest if there is one, else the tag."""

    @classmethod
    def parse(cls, text: str) -> ImageName:
        """Return the name in *text*; raises ConfigurationError if it is invalid."""
        match = _IMAGE.fullmatch(text)
        version = (match["digest"] or match["tag"]) if match else None
        if match is None or version is None:
            raise ConfigurationError(f"{text!r} names no image", remedy="Write it as host/namespace/name@sha256:…")
        return cls(match["host"] or "", match["path"], version)


def docker_name(name: str) -> str:
    """*name* as a container name, a tag or one component of an image's name.

    Names that differ by more than case, which GitHub ignores too, stay different: changes beyond case are marked with a
    fingerprint of the whole name.
    """
    lowered = name.lower()
    if _COMPONENT.fullmatch(lowered) and len(lowered) <= MAX_NAME:
        return lowered
    fingerprint = hashlib.sha256(lowered.encode()).hexdigest()[:_FINGERPRINT]
    words = "__".join("-".join(_WORD.findall(part)) or "x" for part in lowered.split("__"))
    return f"{words[: MAX_NAME - _FINGERPRINT - 1].rstrip('-_')}-{fingerprint}"
