"""Texts of others in a prompt: between tags that none of them can close or open."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

_DIGITS = 12


def sectioned(sections: Sequence[tuple[str, str]]) -> str:
    """Return each (name, text) section between tags with its name and a common suffix that occurs in no text.

    The texts are unchanged: anything that looks like a tag in them lacks the suffix. It is a checksum of all of them,
    so equal sections are equal prompts, and no author of one can know it.
    """
    suffix = _suffix([part for section in sections for part in section])
    return "\n\n".join(f"<{name}-{suffix}>\n{text}\n</{name}-{suffix}>" for name, text in sections)


def _suffix(texts: Sequence[str]) -> str:
    digest = hashlib.sha256("\0".join(texts).encode("utf-8", "backslashreplace")).hexdigest()
    while any(digest[:_DIGITS] in text.lower() for text in texts):
        digest = hashlib.sha256(digest.encode()).hexdigest()
    return digest[:_DIGITS]
