"""Tiers and images by hand, from the platform's own Dockerfiles or from somebody else's.

The result of a custom Dockerfile is marked as custom, by its tag and by a label, and the image of a pull request is
verified like every other. Such an image is no row of `images`: it is never measured or published.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from formulacode_dagster.building.engines.docker.daemon import LABEL
from formulacode_dagster.building.engines.docker.engine import DockerEngine
from formulacode_dagster.building.engines.protocol import BuildOutcome
from formulacode_dagster.building.engines.scratch import scratch_folder
from formulacode_dagster.building.images.build import unverified
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.building.specs.spec import PlainBase, base_tag, image_repository, instrument_for, plan_build
from formulacode_dagster.building.suites.overlays import first_suite
from formulacode_dagster.building.synthesis.docker_context import DockerContext
from formulacode_dagster.building.verification.evidence import Subject
from formulacode_dagster.building.verification.origin import MirrorOrigin
from formulacode_dagster.building.verification.task_folder import build_dockerfile
from formulacode_dagster.building.verification.verify import ImageVerification, verify
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName, item_key
from formulacode_dagster.models.image import BuildSpec, Toolchain
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.sources.git.mirror import Mirror
from resources.containers import ContainersResource
from resources.mirrors import MirrorsResource

from .records import opened
from .synthesizer import planned_item

CUSTOM = f"{LABEL}.custom"
"""Label of images from a custom Dockerfile."""


@dataclass(frozen=True)
class ManagedImage:
    """The built image, and for a pull request its verifications."""

    tag: str
    digest: str
    is_custom: bool
    verified: ImageVerification | None = field(default=None, repr=False)
    """None for a tier, which holds no task yet."""


@dataclass
class ImageManager:
    """Builds with Docker; *database* is one, its URL, or None for that of the settings.

    A *context* is a DockerContext or its folder. Its `Dockerfile.base`, `.repo` or `.pr`, else its `Dockerfile`, is
    built with the arguments it declares: `OS_IMAGE` and `PY_VERSION`; `BASE_IMAGE`, `REPO_URL`, `REPO_IMAGE` and
    `COMMIT_SHA`. Every method raises ConfigurationError if Docker is not the engine, ItemFailure if a build fails, and
    OutsideSystemError.
    """

    database: Database | str | None = None
    _containers: ContainersResource = field(default_factory=ContainersResource, init=False, repr=False)

    def build_base_image(
        self, context: DockerContext | str | Path | None = None, *, python: str = "3.12"
    ) -> ManagedImage:
        """The tier all others lie on, for one interpreter."""
        parts = PlainBase(python, self._containers.settings.os_image, instrument_for(python))
        if context is None:
            tier = self._engine.build_base(parts)
            return ManagedImage(tier.tag, tier.digest, is_custom=False)
        arguments = {"OS_IMAGE": parts.os_image.replace("{python}", python), "PY_VERSION": python}
        return self._custom(_context(context), "base", base_tag(parts).partition(":")[0], arguments)

    def build_repo_image(
        self, owner: str, repo: str, issue_number: int, context: DockerContext | str | Path | None = None
    ) -> ManagedImage:
        """The history tier below the image of a pull request; the platform shares it between those of a month."""
        pr, environment = self._planned(owner, repo, issue_number)
        mirror, spec = self._spec(pr, environment)
        if context is None:
            tier = self._engine.build_repo(spec, Origins(mirror.path))
            return ManagedImage(tier.tag, tier.digest, is_custom=False)
        return self._custom(_context(context), "repo", image_repository(spec.repository), self._arguments(spec, pr))

    def build_pr_image(
        self, owner: str, repo: str, issue_number: int, context: DockerContext | str | Path | None = None
    ) -> ManagedImage:
        """The image of a pull request whose environment is planned, and all verifications of it."""
        pr, environment = self._planned(owner, repo, issue_number)
        mirror, spec = self._spec(pr, environment)
        origins = Origins(mirror.path)
        if context is None:
            outcome = self._engine.build(spec, origins)
        else:
            arguments = {**self._arguments(spec, pr), "REPO_IMAGE": self._engine.build_repo(spec, origins).tag}
            made = self._custom(_context(context), "pr", image_repository(spec.repository), arguments)
            outcome = BuildOutcome(
                tag=made.tag,
                digest=made.digest,
                location=made.tag,
                size_bytes=0,
                seconds=0.0,
                tiers=(),
                toolchain=Toolchain(),
                log="",
            )
        image = unverified(self._engine, spec, pr, outcome)
        suite = first_suite(mirror, pr, environment.benchmark_dir, suite_sha=environment.suite_sha)
        verified = verify(Subject(self._engine, image, MirrorOrigin(mirror.path, pr), "image-manager", suite))
        return ManagedImage(outcome.tag, outcome.digest, context is not None, verified)

    @cached_property
    def _engine(self) -> DockerEngine:
        engine, why = self._containers.chosen()
        if not isinstance(engine, DockerEngine):
            raise ConfigurationError("images are built only with Docker", why=why, remedy="Set FC_ENGINE=docker")
        return engine

    def _planned(self, owner: str, repo: str, issue_number: int) -> tuple[PullRequest, Environment]:
        with opened(self.database) as store, store.transaction() as connection:
            return planned_item(connection, ItemName.parse(item_key(f"{owner}/{repo}", issue_number)))

    def _spec(self, pr: PullRequest, environment: Environment) -> tuple[Mirror, BuildSpec]:
        mirror = (
            MirrorsResource()
            .cache()
            .ensure(pr.facts.repository, commits=(pr.change.base_sha, pr.facts.merge_commit_sha))
        )
        anchor = mirror.anchor(pr.change.base_sha, Month.parse(pr.facts.month).start)
        for commit in (anchor, pr.change.base_sha):
            mirror.complete(commit)
        os_image = self._containers.settings.os_image
        return mirror, plan_build(pr=pr, environment=environment, anchor_sha=anchor, os_image=os_image)

    def _arguments(self, spec: BuildSpec, pr: PullRequest) -> dict[str, str]:
        return {
            "BASE_IMAGE": self._engine.build_base(spec).tag,
            "PY_VERSION": spec.python,
            "REPO_URL": f"{self._containers.settings.clone_url}/{pr.facts.repository}.git",
            "COMMIT_SHA": spec.base_sha,
        }

    def _custom(self, context: DockerContext, tier: str, repository: str, arguments: Mapping[str, str]) -> ManagedImage:
        name = next((name for name in (f"Dockerfile.{tier}", "Dockerfile") if name in context.files), None)
        if name is None:
            raise ConfigurationError(f"{context.name} has no Dockerfile.{tier}, and no Dockerfile")
        content = json.dumps([name, dict(context.files), dict(arguments)], sort_keys=True)
        tag = f"{repository}:custom-{tier}-{hashlib.sha256(content.encode()).hexdigest()[:12]}"
        daemon = self._engine.daemon
        with scratch_folder() as folder:
            dockerfile = context.to_directory(folder / "context") / name
            limits = self._containers.limits
            build_dockerfile(dockerfile, daemon, limits, tag=tag, arguments=arguments, labels={CUSTOM: "1"})
        image = daemon.image(tag)
        if image is None:
            raise ConfigurationError(
                f"{tag} is gone as soon as it was built", remedy="Stop the process that removes images"
            )
        return ManagedImage(tag, str(image.id), is_custom=True)


def _context(context: DockerContext | str | Path) -> DockerContext:
    return context if isinstance(context, DockerContext) else DockerContext.from_directory(context)
