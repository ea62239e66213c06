"""One build of the Docker engine: the tiers of a spec that are not there yet, one after the other."""

from __future__ import annotations

import time
from functools import partial

from formulacode_dagster.engines.protocol import BuildOutcome, Progress
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.specs import context
from formulacode_dagster.specs import spec as naming
from formulacode_dagster.specs.context import Origins

from .daemon import LABEL, DockerDaemon
from .settings import BuildSettings
from .tier import TierBuilder
from .toolchain import toolchain_of


def build_image(
    daemon: DockerDaemon,
    settings: BuildSettings,
    spec: BuildSpec,
    origins: Origins,
    *,
    force: bool,
    rebuild: bool,
    progress: Progress | None,
) -> BuildOutcome:
    """Build what is missing of *spec*.

    With *force* the task tier is built anyway, with *rebuild* the upper tiers, under other tags. Raises what
    `failure_of` says, and OutsideSystemError when Docker is gone.
    """
    started = time.monotonic()
    named = naming.rebuild_tag if rebuild else str
    builder = TierBuilder(daemon, settings, spec.task_id, progress=progress)
    labels = {f"{LABEL}.repository": spec.repository}
    base = builder.base(spec)
    fill = partial(context.write_repo_tier, spec, origins)
    repo = builder.tier("repo", naming.repo_tag(spec), {"BASE_IMAGE": base.tag}, fill, labels=labels)
    fill = partial(context.write_locks, spec, fresh=rebuild)
    env_tag = named(naming.env_tag(spec))
    env = builder.tier("env", env_tag, {"REPO_IMAGE": repo.tag}, fill, labels=labels, force=rebuild)
    arguments = {"ENV_IMAGE": env.tag, "REPOSITORY_ID": str(spec.repository_id)}
    arguments |= {"COMPILER_CACHE": ""} if rebuild else {}
    arguments |= {"CRATES": "locked"} if naming.needs_crates(spec) else {}
    labels |= {f"{LABEL}.task": spec.task_id, f"{LABEL}.spec": naming.spec_hash(spec)}
    fill = partial(context.write_task_tier, spec, origins)
    task_tag = named(naming.task_tag(spec))
    task = builder.tier("task", task_tag, arguments, fill, labels=labels, force=force or rebuild)
    return BuildOutcome(
        tag=task.tag,
        digest=task.digest,
        location=task.tag,
        size_bytes=task.size,
        seconds=time.monotonic() - started,
        tiers=(base.over(), repo.over(base), env.over(repo), task.over(env)),
        toolchain=toolchain_of(daemon, base.digest, spec),
        log=builder.log,
    )
