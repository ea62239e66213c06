"""Pictures in a text."""

from __future__ import annotations

import base64


def in_markdown(name: str, png: bytes) -> str:
    """*png* as Markdown that holds all of it."""
    return f"![{name}](data:image/png;base64,{base64.b64encode(png).decode()})"
