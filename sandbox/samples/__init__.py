"""Small repositories with asv suites, made up for the demo and the tests; their SHAs never change."""

from .catalog import catalog
from .generate import generate
from .sample_set import GeneratedPullRequest, SampleSet

__all__ = ["GeneratedPullRequest", "SampleSet", "catalog", "generate"]
