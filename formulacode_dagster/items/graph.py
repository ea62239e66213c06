"""Which stage reads what: the one statement of the graph, for asset dependencies and for gates alike."""

from __future__ import annotations

from formulacode_dagster.models.items import Stage

UPSTREAM: dict[Stage, tuple[Stage, ...]] = {
    Stage.REPOSITORIES: (),
    Stage.PULL_REQUESTS: (Stage.REPOSITORIES,),
    Stage.CLASSIFICATIONS: (Stage.PULL_REQUESTS,),
    Stage.PROBLEM_STATEMENTS: (Stage.CLASSIFICATIONS,),
    Stage.ENVIRONMENTS: (Stage.CLASSIFICATIONS,),
    Stage.IMAGES: (Stage.ENVIRONMENTS,),
    Stage.MEASUREMENTS: (Stage.IMAGES,),
    Stage.PUBLISHED_IMAGES: (Stage.MEASUREMENTS,),
    Stage.PUBLISHED_DATASET: (Stage.PROBLEM_STATEMENTS, Stage.MEASUREMENTS, Stage.PUBLISHED_IMAGES),
    Stage.MONTHLY_REPORT: (Stage.PUBLISHED_DATASET,),
}
