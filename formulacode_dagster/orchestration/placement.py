"""What a run asks of the machine that takes it, by the stage that it is of, in the words of a launcher."""

import json
from collections.abc import Mapping

from formulacode_dagster.models.items import Stage

KUBERNETES = "dagster-k8s/config"
"""Tag of runs, which the launcher for Kubernetes alone reads."""
QUEUE = "dagster-celery/queue"
"""Tag of runs, which the launcher for Celery alone reads."""
IO, BUILD, MEASURE = "io", "build", "measure"
"""Queues of Celery; a worker takes from those that it is told."""

Resources = Mapping[str, Mapping[str, str]]
# of the run itself: what it builds and measures is the engine's
_WAITING: Resources = {"requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"memory": "3Gi"}}
_WORKING: Mapping[Stage, Resources] = {
    Stage.ENVIRONMENTS: {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "4Gi"}},
    Stage.IMAGES: {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"memory": "4Gi"}},
    Stage.MEASUREMENTS: {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": "4Gi"}},
}
_QUEUES: Mapping[Stage, str] = {
    Stage.ENVIRONMENTS: BUILD,
    Stage.IMAGES: BUILD,
    Stage.MEASUREMENTS: MEASURE,
    # from where they were built
    Stage.PUBLISHED_IMAGES: BUILD,
    Stage.REPLAYS: MEASURE,
}
MONTH_TAGS: Mapping[str, str] = {QUEUE: MEASURE}
"""Tags of a run of a whole month: it measures, and so goes where that may be done."""


def run_tags(stage: Stage) -> dict[str, str]:
    """Tags of a run of *stage* alone: the resources of its pod, and its queue."""
    resources = _WORKING.get(stage, _WAITING)
    return {
        KUBERNETES: json.dumps({"container_config": {"resources": resources}}),
        QUEUE: _QUEUES.get(stage, IO),
    }
