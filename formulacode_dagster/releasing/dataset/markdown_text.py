"""Texts of others in our Markdown: output of programs, names of machines, reasons that people gave."""

from __future__ import annotations

import html
import re

MOST_CHARACTERS = 300
_ACTIVE = re.compile(r"([\\`|\[])")


def shortened(text: str) -> str:
    """Return *text* in one line of at most `MOST_CHARACTERS`."""
    flat = " ".join(text.split())
    return flat if len(flat) <= MOST_CHARACTERS else f"{flat[: MOST_CHARACTERS - 1]}…"


def escaped(text: str) -> str:
    """Return *text* in one line that is no tag, link, picture, code or border of a cell."""
    return _ACTIVE.sub(r"\\\1", html.escape(" ".join(text.split()), quote=False))
