"""Resources of a run by its stage, in the terms of each launcher."""

import json
from collections.abc import Collection, Mapping

from formulacode_dagster.models.items import Stage

KUBERNETES = "dagster-k8s/config"
"""Tag of runs, read only by the launcher for Kubernetes."""
QUEUE = "dagster-celery/queue"
"""Tag of runs, read only by the launcher for Celery."""
IO, BUILD, MEASURE = "io", "build", "measure"
"""Celery queues; a worker consumes those it is configured for."""

Resources = Mapping[str, Mapping[str, str]]
# of the run itself: its builds and measurements are the engine's
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
    Stage.GRADINGS: MEASURE,
    Stage.REPLAYS: MEASURE,
}
MONTH_TAGS: Mapping[str, str] = {QUEUE: MEASURE}
"""Tags of a run of a whole month: it measures, and needs a machine for that."""


def run_tags(stage: Stage) -> dict[str, str]:
    """Return tags for a run of *stage* by itself: the resources of its pod, and its queue."""
    resources = _WORKING.get(stage, _WAITING)
    return {
        KUBERNETES: json.dumps({"container_config": {"resources": resources}}),
        QUEUE: queue_of([stage]),
    }


def queue_of(stages: Collection[Stage]) -> str:
    """Return the queue that all of *stages* have, else that of a month."""
    queues = {_QUEUES.get(stage, IO) for stage in stages}
    return queues.pop() if len(queues) == 1 else MEASURE
