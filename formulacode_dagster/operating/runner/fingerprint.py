"""Fingerprints of inputs, and the version of each stage's code. Together they decide what is done already."""

from __future__ import annotations

import hashlib
import json

from formulacode_dagster.models.items import Stage

CODE_VERSIONS: dict[Stage, str] = dict.fromkeys(Stage, "1") | {
    **dict.fromkeys((Stage.ENVIRONMENTS, Stage.IMAGES), "3"),
    Stage.MEASUREMENTS: "5",
}
"""Raise a stage's version when its results would differ for the same inputs: its items are then pending again.

Of measurements, what runs in the sessions (`suites/harness`, `workloads/laid`) is among the inputs. Raise the version
when `workloads/` or `suites/` look for workloads elsewhere or otherwise, or up to another limit: what was given up for
want of one is then searched again.
"""


def fingerprint(stage: Stage, *inputs: object) -> str:
    """A short hash over the stage's code version and *inputs* (anything JSON or `str` can write)."""
    text = json.dumps([stage.value, CODE_VERSIONS[stage], *inputs], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
