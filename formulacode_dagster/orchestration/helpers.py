"""Runs that help: they work on the items of a month's stage that another run leads, on this machine or another.

The stage stays one asset of one month, with its checks, materialized by the run that leads it. A helper claims free
items until none is left, and leaves no materialization behind. The unit of scale is the run, which every launcher of
Dagster distributes.
"""

from collections.abc import Collection, Iterator

import dagster as dg
from pydantic import Field

from assets.environments import environments
from assets.images import images
from assets.materialize import HELPS, helped, helper_run
from assets.measurements import measurements
from assets.partitions import MONTHS
from assets.published_images import published_images
from formulacode_dagster.building.environments.stage import run as run_environments
from formulacode_dagster.building.images.stage import run as run_images
from formulacode_dagster.measuring.measurement.stage import run as run_measurements
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.runner.claims import SharedStage, shared_stages, working_runs
from formulacode_dagster.operating.runner.work import StageRun, StageSummary
from formulacode_dagster.releasing.registries.stage import run as run_published_images
from resources.agents import AgentsResource
from resources.containers import ContainersResource
from resources.llm import LLMResource
from resources.mirrors import MirrorsResource
from resources.postgres import PostgresResource
from resources.registry import RegistryResource
from resources.sampling import SamplingResource
from resources.settings import read_settings
from resources.tools import environment_tools, image_tools, measurement_tools, published_image_tools

from .placement import run_tags

HELP_OP = "help_stage"
LOOK_SECONDS = 30
MOST_LAUNCHES = 3
"""Times FC_HELPER_RUNS that helpers of one run are launched: those that die are replaced, but not for ever."""
_UNDER_WAY = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
]


_SHARED = ", ".join(asset.stage for asset in (environments, images, measurements, published_images))


class HelperConfig(dg.Config):
    """The stage and month to help."""

    stage: str = Field(description=f"one of {_SHARED}")


@dg.op(
    name=HELP_OP,
    description="Processes free items of a stage that another run leads, until none is left.",
)
def help_stage(
    context: dg.OpExecutionContext,
    config: HelperConfig,
    postgres: PostgresResource,
    mirrors: MirrorsResource,
    containers: ContainersResource,
    sampling: SamplingResource,
    llm: LLMResource,
    registry: RegistryResource,
    agents: AgentsResource,
) -> dg.Output[None]:
    """Do this run's part of the stage; the output's metadata give its amount."""

    def work(stage: StageRun) -> StageSummary:
        match stage.stage:
            case environments.stage:
                tools = environment_tools(stage, mirrors, containers, agents.authors(stage))
                return run_loop(run_environments(stage, tools))
            case images.stage:
                return run_loop(run_images(stage, image_tools(stage, mirrors, containers, agents.authors(stage))))
            case measurements.stage:
                completions = postgres.completions(reask=stage.options.reask)
                measuring = measurement_tools(stage, mirrors, containers, sampling, llm, completions)
                return run_loop(run_measurements(stage, measuring))
            case published_images.stage:
                return run_loop(run_published_images(stage, published_image_tools(stage, containers, registry)))
        raise ConfigurationError(f"{stage.stage} is not a shared stage", remedy=f"Take one of {_SHARED}")

    with helper_run(context, postgres, Stage(config.stage)) as run:
        if run is None:
            context.log.info(f"no run leads {config.stage} of {context.partition_key} any more")
            return dg.Output(None, metadata={"items": 0})
        summary = work(run)
    return dg.Output(None, metadata={"items": len(summary.worked), "seconds": round(summary.cost.seconds, 2)})


@dg.job(
    partitions_def=MONTHS,
    executor_def=dg.in_process_executor,
    description="Helps a run of a month with its items; launched by the sensor, or by hand, on any machine.",
)
def helper() -> None:
    """Help."""
    help_stage()


@dg.sensor(
    job=helper,
    name="helpers",
    minimum_interval_seconds=LOOK_SECONDS,
    default_status=dg.DefaultSensorStatus.STOPPED,
    description="Launches up to FC_HELPER_RUNS helpers of every stage that is shared, and others for those that died.",
)
def helpers_sensor(
    context: dg.SensorEvaluationContext, postgres: PostgresResource
) -> Iterator[dg.RunRequest | dg.SkipReason]:
    """Ask for the helpers that are missing."""
    most = read_settings().helper_runs
    if not most:
        yield dg.SkipReason("FC_HELPER_RUNS is 0: helpers are disabled")
        return
    with postgres.database().transaction() as connection:
        shared, at_work = shared_stages(connection), working_runs(connection)
    requests = [request for stage in shared for request in _missing(context.instance, stage, at_work, most)]
    if not requests:
        yield dg.SkipReason("no free items are left" if shared else "no stage is shared now")
    yield from requests


def _missing(
    instance: dg.DagsterInstance, shared: SharedStage, at_work: Collection[str], most: int
) -> Iterator[dg.RunRequest]:
    name = helped(shared.stage, shared.month, shared.run_id)
    launched = instance.get_runs(dg.RunsFilter(tags={HELPS: name}))
    under_way = [run.run_id for run in launched if run.status in _UNDER_WAY]
    # each of those that are at nothing yet will take something that is free
    on_the_way = sum(run_id not in at_work for run_id in under_way)
    wanted = min(most - len(under_way), shared.free - on_the_way)
    for number in range(len(launched), min(len(launched) + wanted, most * MOST_LAUNCHES)):
        yield dg.RunRequest(
            run_key=f"{name} {number}",
            partition_key=shared.month,
            run_config={"ops": {HELP_OP: {"config": {"stage": shared.stage.value}}}},
            tags={HELPS: name, **run_tags(shared.stage)},
        )
