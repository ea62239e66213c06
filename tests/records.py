"""Valid records for any test that needs one. What a test is about it gives itself; what it leaves out is plain.

No fixtures, and nothing that only one part of the tests asks for.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime
from statistics import geometric_mean

from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.models.attempt import BuildAttempt
from formulacode_dagster.models.classification import Classification
from formulacode_dagster.models.image import BuildSpec, BuiltImage
from formulacode_dagster.models.measurement import BenchmarkResult, Measurement, RandomizationUnit, Verdict
from formulacode_dagster.models.problem import ProblemStatement
from formulacode_dagster.models.pull_request import Change, MergedPullRequest, PullRequest
from formulacode_dagster.models.release import Release

MONTH = "2026-02"
OPENED, MERGED = datetime(2025, 12, 1, tzinfo=UTC), datetime(2026, 2, 3, tzinfo=UTC)
KEY: dict[str, object] = {"month": MONTH, "repository_id": 7, "number": 1}


def make_merged(**fields: object) -> MergedPullRequest:
    """GitHub's facts of a pull request: of `a/b#1`, unless *fields* say otherwise."""
    defaults: dict[str, object] = {
        **KEY,
        "repository": "a/b",
        "title": "Faster",
        "created_at": OPENED,
        "merged_at": MERGED,
        "base_ref": "main",
        "head_sha": "a" * 40,
        "merge_commit_sha": "b" * 40,
    }
    return MergedPullRequest.model_validate({**defaults, **fields})


def make_change(patch: bytes = b"diff\n", /, **fields: object) -> Change:
    """A squashed change whose patch is *patch*."""
    defaults: dict[str, object] = {
        **KEY,
        "merge_kind": "squash",
        "base_sha": "c" * 40,
        "merge_tree_sha": "d" * 40,
        "patch_sha256": hashlib.sha256(patch).hexdigest(),
        "patch_bytes": len(patch),
        "files": (),
    }
    return Change.model_validate({**defaults, **fields})


def make_pull_request(facts: MergedPullRequest, **change: object) -> PullRequest:
    """*facts*, and a change of the same key with the fields of *change*."""
    given = {"month": facts.month, "repository_id": facts.repository_id, "number": facts.number, **change}
    return PullRequest(facts=facts, change=make_change(**given))


def make_classification(**fields: object) -> Classification:
    """A verdict on `a/b#1`: it is a performance pull request."""
    defaults: dict[str, object] = {
        **KEY,
        "is_performance": True,
        "category": "cache_and_reuse",
        "difficulty": "easy",
        "confidence": 0.5,
        "reason": "",
        "model": "m",
        "prompt_version": "1",
        "patch_truncated": False,
    }
    return Classification.model_validate({**defaults, **fields})


def make_spec(lock: str = "", **fields: object) -> BuildSpec:
    """A spec whose environment is *lock*, with its hash."""
    defaults: dict[str, object] = {
        "task_id": "a__b-1",
        "repository": "a/b",
        "repository_id": 7,
        "base_sha": "c" * 40,
        "anchor_sha": "c" * 40,
        "python": "3.12",
        "os_image": "os:{python}",
        "instrument": (),
        "lock": lock,
        "lock_sha256": hashlib.sha256(lock.encode()).hexdigest(),
        "benchmark_dir": "benchmarks",
    }
    return BuildSpec.model_validate({**defaults, **fields})


def make_image(**fields: object) -> BuiltImage:
    """An image that Docker built, in which nothing was found or verified yet."""
    defaults: dict[str, object] = {
        **KEY,
        "engine": "docker",
        "spec": make_spec(),
        "tag": "formulacode/a__b:1",
        "digest": "sha256:1",
        "location": "formulacode/a__b:1",
        "size_bytes": 1,
        "build_seconds": 1.0,
        "tiers": (),
        "benchmarks": (),
        "verifications": (),
    }
    return BuiltImage.model_validate({**defaults, **fields})


def make_measurement(speedups: Mapping[str, float], **fields: object) -> Measurement:
    """A measurement of benchmarks with these speed-ups, by name, without its samples: faster if their mean is."""
    mean = geometric_mean(speedups.values()) if speedups else 1.0
    results = tuple(
        BenchmarkResult(
            benchmark=name,
            samples=(),
            speedup=speedup,
            low=0.9 * speedup,
            high=1.1 * speedup,
            faster_p=0.001,
            slower_p=1.0,
            control_speedup=1.0,
            executes_change=True,
        )
        for name, speedup in speedups.items()
    )
    defaults: dict[str, object] = {
        **KEY,
        "engine": "docker",
        "image_digest": "sha256:1",
        "instrument": (),
        "suite": "base",
        "verdict": Verdict.FASTER if mean >= 1.05 else Verdict.UNCHANGED,
        "speedup": mean,
        "low": 0.95 * mean,
        "high": 1.05 * mean,
        "p_value": 0.001,
        "slower_p_value": 1.0,
        "control_speedup": 1.0,
        "control_low": 0.99,
        "control_high": 1.01,
        "disturbed": False,
        "faster": tuple(name for name, speedup in speedups.items() if speedup > 1.1),
        "slower": (),
        "needs": "",
        "rule": SamplingPlan().rule(RandomizationUnit.PROCESS),
        "look": 0,
        "rounds": 8,
        "results": results,
        "machine": "a machine",
    }
    return Measurement.model_validate({**defaults, **fields})


def make_attempt(**fields: object) -> BuildAttempt:
    """A first attempt that Docker ended in the `task` tier."""
    defaults: dict[str, object] = {
        **KEY,
        "attempt": 1,
        "run_id": "run",
        "engine": "docker",
        "started_at": MERGED,
        "seconds": 1.5,
        "spec": make_spec(),
        "stage": "task",
    }
    return BuildAttempt.model_validate({**defaults, **fields})


def make_statement(text: str, **fields: object) -> ProblemStatement:
    """A statement that says no more than *text*."""
    defaults: dict[str, object] = {**KEY, "statement_minimal": text, "final_md": text, "template_version": "1"}
    return ProblemStatement.model_validate({**defaults, **fields})


def make_release(**fields: object) -> Release:
    """The first release of the month, without a task."""
    checksums = dict.fromkeys(("rows_sha256", "read_back_sha256", "schema_sha256"), "0")
    facts = {"month": MONTH, "tag": "formulacode@2026-03", "destination": "/x", "revision": "1", **checksums}
    return Release.model_validate({"tasks": 0, "task_ids": (), "released_at": MERGED, **facts, **fields})
