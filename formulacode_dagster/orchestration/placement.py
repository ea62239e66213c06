"""What a run asks of the machine that takes it, by the stage that it is of, in the words of a launcher."""

import json
from collections.abc import Mapping

from formulacode_dagster.models.items import Stage

KUBERNETES = "dagster-k8s/config"
"""Tag of runs, which the launcher for Kubernetes alone reads."""

Resources = Mapping[str, Mapping[str, str]]
# of the run itself: what it builds and measures is the engine's
_WAITING: Resources = {"requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"memory": "3Gi"}}
_WORKING: Mapping[Stage, Resources] = {
    Stage.ENVIRONMENTS: {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "4Gi"}},
    Stage.IMAGES: {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "4Gi"}},
    Stage.MEASUREMENTS: {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": "4Gi"}},
}


def run_tags(stage: Stage) -> dict[str, str]:
    """Tags of a run of *stage* alone: the resources of its pod."""
    resources = _WORKING.get(stage, _WAITING)
    return {KUBERNETES: json.dumps({"container_config": {"resources": resources}})}
