"""Small repositories with asv suites, made up for the demo and the tests; their SHAs never change."""

from .catalog import catalog
from .generate import generate
from .sample_set import ExpectedOutcome, GeneratedPullRequest, SampleSet, expected_outcomes

__all__ = ["ExpectedOutcome", "GeneratedPullRequest", "SampleSet", "catalog", "expected_outcomes", "generate"]
