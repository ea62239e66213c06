"""Locate the asv configuration among the paths of a commit."""

from __future__ import annotations

from collections.abc import Iterable

FILE_NAMES = ("asv.conf.json", "asv.conf.jsonc")
"""Names that asv looks for, in its order."""


def nearest_config(paths: Iterable[str]) -> str | None:
    """Return the asv configuration among *paths* that is nearest to the top; None if there is none."""
    configs = [path for path in paths if path.rpartition("/")[2] in FILE_NAMES]
    return min(configs, key=lambda path: (path.count("/"), path), default=None)
