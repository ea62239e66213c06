"""Words for series of benchmarks over the commits of a repository."""

from __future__ import annotations

from enum import StrEnum


class Source(StrEnum):
    """Where the series of a dashboard come from."""

    PUBLISHED = "published"
    """A site that others made with `asv publish`."""
    RESULTS = "results"
    """Raw results of asv, of our own machine or of others."""
