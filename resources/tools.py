"""Tools of the stages that need several resources."""

from __future__ import annotations

from formulacode_dagster.building.environments.stage import EnvironmentTools
from formulacode_dagster.building.images.repairs.attempts import Authors
from formulacode_dagster.building.images.stage import ImageTools
from formulacode_dagster.measuring.measurement.cores import leased_cores
from formulacode_dagster.measuring.measurement.stage import MeasurementTools
from formulacode_dagster.models.completion import CompletionCache
from formulacode_dagster.operating.runner.work import StageRun
from formulacode_dagster.releasing.gradings.stage import GradingTools
from formulacode_dagster.releasing.registries.stage import PublishedImageTools

from .containers import ContainersResource
from .llm import LLMResource
from .mirrors import MirrorsResource
from .registry import RegistryResource
from .sampling import SamplingResource


def environment_tools(
    stage: StageRun, mirrors: MirrorsResource, containers: ContainersResource, authors: Authors | None = None
) -> EnvironmentTools:
    """Return the tools of `environments`; raises as `ContainersResource.engine_for`."""
    engine, _ = containers.engine_for(stage.database, stage.month)
    resolver = containers.resolver(containers.machine(stage.database, engine, stage.note).building)
    return EnvironmentTools(engine, mirrors.cache(), resolver, containers.settings.os_image, authors)


def image_tools(
    stage: StageRun, mirrors: MirrorsResource, containers: ContainersResource, authors: Authors | None = None
) -> ImageTools:
    """Return the tools of `images`; raises as `ContainersResource.engine_for`."""
    engine, _ = containers.engine_for(stage.database, stage.month)
    turn = containers.machine(stage.database, engine, stage.note).building
    os_image = containers.settings.os_image
    return ImageTools(
        engine,
        mirrors.cache(),
        containers.resolver(turn),
        os_image,
        containers.image_store(engine),
        containers.budgets.build_cache,
        authors,
        turn,
    )


def measurement_tools(
    stage: StageRun,
    mirrors: MirrorsResource,
    containers: ContainersResource,
    sampling: SamplingResource,
    llm: LLMResource,
    cache: CompletionCache,
) -> MeasurementTools:
    """Return the tools of `measurements`; raises as `ContainersResource.engine_for`."""
    engine, _ = containers.engine_for(stage.database, stage.month)
    concurrency = sampling.settings.measurement_concurrency
    machine = containers.machine(stage.database, engine, stage.note)
    return MeasurementTools(
        engine,
        mirrors.cache(),
        sampling.plan(),
        containers.limits,
        leased_cores(machine, at_once=concurrency),
        concurrency,
        tuple(mirrors.settings.suite_repositories),
        llm.models(cache),
        llm.settings.workload_writer,
    )


def published_image_tools(
    stage: StageRun, containers: ContainersResource, registry: RegistryResource
) -> PublishedImageTools:
    """Return the tools of `published_images`; raises as `ContainersResource.engine_for` in a shared stage."""
    settings = registry.settings
    # only if several machines push does it matter which of them has an image
    engine = containers.engine_for(stage.database, stage.month)[0] if stage.sharing else None
    return PublishedImageTools(registry.client(), settings.registry_url, settings.push_concurrency, engine)


def grading_tools(
    stage: StageRun, containers: ContainersResource, registry: RegistryResource, sampling: SamplingResource
) -> GradingTools:
    """Return the tools of `gradings`; raises as `ContainersResource.engine_for`."""
    engine, _ = containers.engine_for(stage.database, stage.month)
    turn = containers.machine(stage.database, engine, stage.note).timing
    settings = sampling.settings
    return GradingTools(registry.puller(), settings.grading_seconds, settings.grading_tries, turn)
