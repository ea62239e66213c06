"""For scripts and notebooks: pull requests, the issues behind them, statements, functions of one's own, images checked.

Nothing here knows Dagster; what the pipeline does, it does with the same parts.
"""

from __future__ import annotations

from formulacode_dagster.github.transport.tokens import TokenPool
from formulacode_dagster.verification.verifiers import (
    MultiVerifier,
    ProfileVerifier,
    SmokeVerifier,
    Verifier,
    VerifierResult,
)

from .client import PR, GitHubClient, Source
from .hooks import HookRegistry
from .links import Links, scrape_links
from .statement import render_problem_statement

__all__ = [
    "PR",
    "GitHubClient",
    "HookRegistry",
    "Links",
    "MultiVerifier",
    "ProfileVerifier",
    "SmokeVerifier",
    "Source",
    "TokenPool",
    "Verifier",
    "VerifierResult",
    "render_problem_statement",
    "scrape_links",
]
