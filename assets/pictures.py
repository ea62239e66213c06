"""Pictures among the metadata of an asset."""

from __future__ import annotations

import base64

import dagster as dg


def picture(name: str, png: bytes) -> dg.MarkdownMetadataValue:
    """*png* as a page of the UI shows it."""
    return dg.MetadataValue.md(f"![{name}](data:image/png;base64,{base64.b64encode(png).decode()})")
