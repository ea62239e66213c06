"""For scripts and notebooks: pull requests, the issues behind them, statements, and functions of one's own.

Nothing here knows Dagster; what the pipeline does, it does with the same parts.
"""

from __future__ import annotations

from formulacode_dagster.github.tokens import TokenPool

from .client import GitHubClient
from .hooks import HookRegistry
from .links import Links, scrape_links
from .pull_request import PR, Source
from .statement import render_problem_statement

__all__ = [
    "PR",
    "GitHubClient",
    "HookRegistry",
    "Links",
    "Source",
    "TokenPool",
    "render_problem_statement",
    "scrape_links",
]
