"""What others wrote, as a prompt shows it to a model: between tags that nothing of it can close or open."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

_DIGITS = 12


def sectioned(sections: Sequence[tuple[str, str]]) -> str:
    """(name, text) of each section between tags of its name and one suffix, which none of the texts holds.

    The texts stay as they are: whatever is spelled like a tag in them lacks the suffix. It is a checksum of all of
    them, so that equal sections are equal prompts, and whoever writes one of them cannot know it.
    """
    suffix = _suffix([part for section in sections for part in section])
    return "\n\n".join(f"<{name}-{suffix}>\n{text}\n</{name}-{suffix}>" for name, text in sections)


def _suffix(texts: Sequence[str]) -> str:
    digest = hashlib.sha256("\0".join(texts).encode("utf-8", "backslashreplace")).hexdigest()
    while any(digest[:_DIGITS] in text.lower() for text in texts):
        digest = hashlib.sha256(digest.encode()).hexdigest()
    return digest[:_DIGITS]
