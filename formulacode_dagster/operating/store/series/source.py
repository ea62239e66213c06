"""Words for series of benchmarks over the commits of a repository."""

from __future__ import annotations

from enum import StrEnum


class Source(StrEnum):
    """Sources of a dashboard's series."""

    PUBLISHED = "published"
    """A site that others made with `asv publish`."""
    RESULTS = "results"
    """Raw results of asv, of our own machine or of others."""
