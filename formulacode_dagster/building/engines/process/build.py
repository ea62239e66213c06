"""One build of the process engine: the scripts of `dockerfiles/`, run one after the other in a folder."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from formulacode_dagster.building.engines.credentials import has_credentials
from formulacode_dagster.building.engines.failures import DISK, failure_of, note_index
from formulacode_dagster.building.engines.folders import remove_tree, size_of
from formulacode_dagster.building.engines.free_space import SpaceWatch
from formulacode_dagster.building.engines.processes import Bounds, run_bounded
from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.building.engines.view import existing, hand_over, untrusted_user
from formulacode_dagster.building.specs import context, recipes, sources
from formulacode_dagster.building.specs import spec as naming
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuildSpec, ResourceLimits, Tier, Toolchain
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.cancellation.last_answers import note_answer

from .interpreters import Interpreter
from .layout import BuildManifest, Layout, online_variables
from .sharing import note_installed
from .tier_cache import TierCache, tier_name

BUILD_NICENESS = 5
_TIER_OF = {"install-instrument": "base", "fetch-history": "repo", "install-environment": "env", "install-tests": "env"}
"""Tier that a script belongs to; the others make the task's."""


@dataclass(frozen=True)
class ProcessBuildSettings:
    """Settings shared by all builds of an engine."""

    limits: ResourceLimits
    isolate_network: bool
    confined: bool
    """False if this machine does not allow giving code its own files and user."""
    uv: str
    tiers: TierCache
    environment: Mapping[str, str]
    """The host's variables, of which `online_variables` reach the steps that download."""


@dataclass
class ProcessBuild:
    """The steps of one build, their common deadline and their log."""

    settings: ProcessBuildSettings
    spec: BuildSpec
    work: Layout
    interpreter: Interpreter
    progress: ProgressReporter | None
    _lines: list[str] = field(default_factory=list, init=False)

    def __post_init__(self) -> None:
        self._lap = time.monotonic()
        self._deadline = self._lap + self.settings.limits.build_seconds

    def run(self, origins: Origins, *, rebuild: bool = False) -> BuildManifest:
        """Build everything and write log and manifest, under the tags of a second build with *rebuild*.

        Raises the errors of `failure_of` if a step fails, and ItemFailure (`credentials`) if one would run code that
        could read passwords.
        """
        named = naming.rebuild_tag if rebuild else str
        spec, work = self.spec, self.work
        work.make()
        context.write_instrument(spec, work.task)
        context.write_locks(spec, work.task, fresh=rebuild)
        context.write_task(spec, work.task)
        # wheels, which run nothing
        self._step("install-instrument", online=True, trusted=True)
        toolchain = self._toolchain()
        base = self._tier("base", naming.base_tag(spec), work.instrument)
        bundle = work.folder / "history.bundle"
        sources.write_bundle(origins.mirror, spec.base_sha, bundle)
        if self.settings.confined:
            work.folder.chmod(0o755)
            bundle.chmod(0o644)
            hand_over(work.repository)
        self._step("fetch-history", str(bundle))
        bundle.unlink()
        repo = self._tier("repo", naming.repo_tag(spec), work.repository)
        if rebuild:
            self._install_environments()
        else:
            self._lay_environments()
        work.hash_records()
        env = self._tier("env", named(naming.env_tag(spec)), work.build_venv, work.venv, work.tests)
        context.write_submodules(spec, origins.submodules, work.task / "submodules")
        self._hand_over()
        self._step("checkout")
        if naming.needs_crates(spec):
            self._step("fetch-crates", online=True)
        tiers, tier = self.settings.tiers, tier_name(spec, self.interpreter)
        with nullcontext() if rebuild else tiers.bytecode_in(work.folder, tier):
            self._step("install-package")
        for name in ("home", "tmp", "scratch"):
            remove_tree(work.folder / name)
        work.log.write_text(self._log)
        note_installed(work, protect=self.settings.confined and untrusted_user() != (os.getuid(), os.getgid()))
        total = size_of(work.folder)
        lower = (base, repo, env)
        task = Tier(
            name="task",
            tag=named(naming.task_tag(spec)),
            seconds=self._take_lap(),
            size_bytes=total - sum(tier.size_bytes for tier in lower),
        )
        manifest = BuildManifest(
            tag=task.tag,
            digest=work.digest(),
            size_bytes=total,
            seconds=sum(tier.seconds for tier in (*lower, task)),
            tiers=(*lower, task),
            toolchain=toolchain,
        )
        work.manifest.write_text(manifest.model_dump_json(indent=1))
        note_answer(DISK)
        return manifest

    def _lay_environments(self) -> None:
        """Install the locked distributions, unless a build of equal locks on this interpreter has."""
        asked = time.monotonic()
        with self.settings.tiers.locked(tier_name(self.spec, self.interpreter)) as tier:
            # another build that makes it may have been waited for, which is no time of this one
            waited = time.monotonic() - asked
            self._deadline, self._lap = self._deadline + waited, self._lap + waited
            if tier.is_there:
                tier.lay(self.work.folder)
                self._say("the environment is that of an earlier build with the same locks")
            else:
                self._install_environments()
                tier.keep(self.work.folder, self.interpreter.path)

    def _install_environments(self) -> None:
        work, trusted = self.work, self.spec.wheels_only
        if not trusted:
            self._hand_over()
        self._step("install-environment", str(work.build_venv), "build-requirements.txt", online=True, trusted=trusted)
        self._step("install-environment", str(work.venv), "requirements.txt", online=True, trusted=trusted)
        self._step("install-tests", online=True, trusted=trusted)

    def _hand_over(self) -> None:
        """From here on code of others writes in the folders, and steps that are trusted do no more."""
        if self.settings.confined:
            self.work.hand_over()

    def _tier(self, name: str, tag: str, *folders: Path) -> Tier:
        return Tier(name=name, tag=tag, seconds=self._take_lap(), size_bytes=size_of(*folders))

    def _toolchain(self) -> Toolchain:
        """The toolchain of this machine, determined before any code of the repository is present."""
        command = [str(self.interpreter.path), "-I", str(recipes.script("describe_toolchain.py"))]
        environment = self.work.environment(self.settings.uv, str(self.interpreter.path))
        done = run_bounded(command, timeout=60, bounds=Bounds(), environment=environment, cwd=self.work.folder)
        self._require(done, "describe_toolchain.py", "base", self._log + done.stderr.decode(errors="replace"), 60)
        return naming.with_flags(Toolchain.model_validate_json(done.stdout), self.spec)

    @property
    def _log(self) -> str:
        return "".join(f"{line}\n" for line in self._lines)

    def _take_lap(self) -> float:
        before, self._lap = self._lap, time.monotonic()
        return self._lap - before

    def _step(self, script: str, *arguments: str, online: bool = False, trusted: bool = False) -> None:
        """Run *script*; unless it is *trusted* to run no code from outside, only with the files of this build."""
        settings, view = self.settings, None
        environment = self.work.environment(settings.uv, str(self.interpreter.path))
        index = online_variables(settings.environment) if online else {}
        if not trusted and has_credentials(index):
            raise ItemFailure(
                FailureKind.CREDENTIALS,
                f"{script} of {self.spec.task_id} was not run",
                why="its code could read the credentials in the settings of index or proxy",
                remedy="Take an index and a proxy without a password, or build with Docker",
            )
        environment |= index
        if online:
            environment["UV_CACHE_DIR"] = _cache(settings.environment)
        if settings.confined and not trusted:
            more, installs = existing(index.values()), script in ("install-environment", "install-tests")
            view = self.work.view(settings.uv, self.interpreter.path, more=more, installs=installs)
            # of its own: what code wrote to a common one would be installed by other builds
            environment["UV_CACHE_DIR"] = str(self.work.folder / "tmp" / "uv-cache")
        self._say(f"$ {script}")
        with SpaceWatch(self.work.folder, Path(environment["UV_CACHE_DIR"]) if online else None) as space:
            done = run_bounded(
                ["bash", str(recipes.script(script)), *arguments],
                timeout=max(0.1, self._deadline - time.monotonic()),
                bounds=Bounds(
                    settings.limits,
                    isolate_network=settings.isolate_network and not online,
                    nice=BUILD_NICENESS,
                    view=view,
                ),
                environment=environment,
                cwd=self.work.folder,
                progress=self._say,
            )
        stage, seconds = _TIER_OF.get(script, "task"), settings.limits.build_seconds
        self._require(done, script, stage, self._log, seconds, online=online, disk_is_full=space.was_full)
        if online:
            note_index(self._log)

    def _require(
        self,
        done: Completed,
        script: str,
        stage: str,
        log: str,
        seconds: float,
        *,
        online: bool = False,
        disk_is_full: bool = False,
    ) -> None:
        if not done.ok:
            raise failure_of(
                f"{script} of {self.spec.task_id}",
                stage=stage,
                rc=done.rc,
                log=log,
                online=online,
                timed_out=done.timed_out,
                seconds=seconds,
                disk_is_full=disk_is_full,
            )

    def _say(self, line: str) -> None:
        self._lines.append(line)
        if self.progress is not None:
            self.progress(line)


def _cache(environment: Mapping[str, str]) -> str:
    if explicit := environment.get("UV_CACHE_DIR"):
        return explicit
    base = environment.get("XDG_CACHE_HOME")
    return str((Path(base) if base else Path.home() / ".cache") / "uv")
