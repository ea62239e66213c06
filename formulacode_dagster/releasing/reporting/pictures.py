"""Pictures in a text."""

from __future__ import annotations

import base64


def in_markdown(name: str, png: bytes) -> str:
    """Return *png* as self-contained Markdown."""
    return f"![{name}](data:image/png;base64,{base64.b64encode(png).decode()})"
