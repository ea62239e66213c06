from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from sandbox.samples import SampleSet, catalog
from sandbox.samples.definitions import SamplePullRequest
from tests.support.samples import pull_request_of
from tests.support.sampling import sampled

ATTEMPTS = 3
"""Other load may disturb one timing; what is absent shows in none of three."""
LONGEST = 0.06
"""Seconds that a benchmark of the demo may take."""


def _working() -> list[SamplePullRequest]:
    chosen = [change for change in catalog() if change.expected is not None and change.expected.benchmark]
    return [
        change
        for change in chosen
        if change.expected is not None and change.expected.reason != "oracle_breaks_benchmarks"
    ]


@pytest.mark.slow
@pytest.mark.parametrize("definition", sampled(_working(), most=8), ids=lambda definition: definition.item)
def test_a_speedup_is_real_and_a_trap_has_none(
    definition: SamplePullRequest, samples: SampleSet, seconds_of: Callable[..., float]
) -> None:
    generated = pull_request_of(samples, definition.item)
    expected = definition.expected
    assert expected is not None

    def seconds(commit: str) -> float:
        return seconds_of(definition.repository, commit, expected.benchmark, suite=generated.merge_commit_sha)

    figures = []
    for _ in range(ATTEMPTS):
        base, oracle = seconds(generated.base_sha), seconds(generated.merge_commit_sha)
        figures.append(f"{base * 1000:.2f} -> {oracle * 1000:.2f} ms, {base / oracle:.1f}x")
        fits = 0.00005 < base < LONGEST
        is_as_told = base / oracle > expected.speedup if expected.speedup is not None else base / oracle < 1.3
        if fits and is_as_told:
            return
    pytest.fail(f"not as its definition says, or too short or long to be timed in a demo: {'; '.join(figures)}")


@pytest.mark.slow
def test_the_oracle_that_breaks_its_benchmark_breaks_it(samples: SampleSet, seconds_of: Callable[..., float]) -> None:
    (definition,) = (
        change for change in catalog() if change.expected and change.expected.reason == "oracle_breaks_benchmarks"
    )
    generated = pull_request_of(samples, definition.item)
    assert definition.expected is not None
    question = (definition.expected.benchmark,)
    assert seconds_of(definition.repository, generated.base_sha, *question, suite=generated.merge_commit_sha) > 0
    with pytest.raises(subprocess.CalledProcessError):
        seconds_of(definition.repository, generated.merge_commit_sha, *question, suite=generated.merge_commit_sha)
