"""Fingerprints of inputs, and code versions of stages. Together they decide which items are done."""

from __future__ import annotations

import hashlib
import json

from formulacode_dagster.models.items import Stage

CODE_VERSIONS: dict[Stage, str] = dict.fromkeys(Stage, "1") | {
    **dict.fromkeys((Stage.ENVIRONMENTS, Stage.IMAGES), "4"),
    Stage.PROBLEM_STATEMENTS: "2",
    Stage.MEASUREMENTS: "7",
}
"""Raise a stage's version when its results would differ for the same inputs: its items are then pending again.

The code that runs in sessions of measurements (`suites/harness`, `workloads/generated`) is part of their inputs. Raise
the version when `workloads/` or `suites/` search for workloads in other places, in other ways or up to other limits:
items without a workload are then searched again.
"""


def fingerprint(stage: Stage, *inputs: object) -> str:
    """A short hash over the stage's code version and *inputs* (anything JSON or `str` can write)."""
    text = json.dumps([stage.value, CODE_VERSIONS[stage], *inputs], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
