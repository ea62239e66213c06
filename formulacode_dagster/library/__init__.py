"""For scripts and notebooks: the dataset, pull requests, their issues, judges, statements, hooks, images with checks.

Nothing here knows Dagster; it uses the same parts as the pipeline.
"""

from __future__ import annotations

from formulacode_dagster.building.synthesis.docker_context import DockerContext
from formulacode_dagster.building.verification.verifiers import (
    MultiVerifier,
    ProfileVerifier,
    SmokeVerifier,
    Verifier,
    VerifierResult,
)
from formulacode_dagster.sources.github.transport.tokens import TokenPool

from .classifying import BatchEntry, ClassifyJudge, PerfClassifier, Progress
from .client import PR, GitHubClient, Source
from .dataset import Dataset, TableNotReleasedError, Task
from .hooks import HookRegistry
from .image_manager import ImageManager, ManagedImage
from .links import Links, scrape_links
from .publishing import HuggingFacePublisher
from .records import records
from .statement import render_problem_statement
from .synthesizer import Synthesizer

__all__ = [
    "PR",
    "BatchEntry",
    "ClassifyJudge",
    "Dataset",
    "DockerContext",
    "GitHubClient",
    "HookRegistry",
    "HuggingFacePublisher",
    "ImageManager",
    "Links",
    "ManagedImage",
    "MultiVerifier",
    "PerfClassifier",
    "ProfileVerifier",
    "Progress",
    "SmokeVerifier",
    "Source",
    "Synthesizer",
    "TableNotReleasedError",
    "Task",
    "TokenPool",
    "Verifier",
    "VerifierResult",
    "records",
    "render_problem_statement",
    "scrape_links",
]
