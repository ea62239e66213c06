"""Arms of a task: a session each, built, and rebuilt if the randomization unit is the build."""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePosixPath

from formulacode_dagster.building.engines.protocol import Completed, Engine, Session
from formulacode_dagster.building.suites.harness_output import describe
from formulacode_dagster.building.suites.overlays import SuiteFiles
from formulacode_dagster.building.suites.patching import apply_patch, build_base, build_oracle
from formulacode_dagster.building.suites.questions import KeptBuild
from formulacode_dagster.building.suites.remote import HarnessClient
from formulacode_dagster.models.image import BuiltImage, ResourceLimits
from formulacode_dagster.models.measurement import Arm

from .changed_code import changes_build
from .log import Log
from .patch import FileChange, changes_no_compiled_code

ALIGNMENT = 16
CODE_STEPS, DATA_STEPS = 1024, 64
"""Paddings cover some pages of code, and as many bytes of data as decide which data share a cache line."""


@dataclass(frozen=True)
class Arms:
    """The sessions of one task, and the harness in each."""

    engine: Engine
    image: BuiltImage
    run_id: str
    limits: ResourceLimits
    log: Log
    stack: ExitStack
    """Closes the sessions."""
    sessions: dict[Arm, Session] = field(default_factory=dict)
    remotes: dict[Arm, HarnessClient] = field(default_factory=dict)
    linkers: dict[Arm, str] = field(default_factory=dict)
    """Where an arm's last build was linked, and everything needed to link it again."""
    as_built: dict[Arm, Session] = field(default_factory=dict)
    """Copies of arms as they were built, in which nothing else has run."""
    folder: str = field(default_factory=lambda: f"fc-linkers-{secrets.token_hex(4)}")
    """Name of that folder, on every arm: what a compiler's cache has is found under the same variables only."""

    @classmethod
    @contextmanager
    def open(
        cls, engine: Engine, image: BuiltImage, *, run_id: str, limits: ResourceLimits, log: Log
    ) -> Iterator[Arms]:
        """Arms of *image* for `prepare`, whose sessions are gone afterwards."""
        with ExitStack() as stack:
            yield cls(engine, image, run_id, limits, log, stack)

    def prepare(
        self, files: Sequence[FileChange], patch: bytes, suite: SuiteFiles, *, copy_oracle: bool = False
    ) -> dict[Arm, dict[str, bytes]]:
        """Open each arm at its code, built, and lay *suite* over it; returns the changed Python files before and after.
        With *copy_oracle*, the oracle is in `as_built` too.

        The suite is added after the build, so nothing of it gets into the package. The others start as copies of the
        built base, with what its compiler made, so that they compile only what the patch changes. If no compiled code
        can change, the control stays as copied, which equals a second build. Raises ItemFailure:
        `oracle_does_not_apply`, and as `build_oracle`.
        """
        python = [change for change in files if PurePosixPath(change.path).suffix == ".py"]
        control_is_copy = changes_no_compiled_code(files)
        # of the same sources another `setup.py` may make other objects, and those are linked again
        is_linked = not control_is_copy or changes_build(files)
        self.start(Arm.BASE)
        base = self.remotes[Arm.BASE]
        sources = {Arm.BASE: base.read(change.base_path for change in python if change.base_path)}
        # built as well: otherwise effects of rebuilding would look like effects of the patch
        self._build_first(Arm.BASE, is_linked=is_linked)
        for arm in (Arm.ORACLE, Arm.CONTROL):
            self.start(arm, like=self.sessions[Arm.BASE])
        self.log("applying the author's patch")
        apply_patch(self.sessions[Arm.ORACLE], patch)
        oracle = self.remotes[Arm.ORACLE]
        sources[Arm.ORACLE] = oracle.read(change.oracle_path for change in python if change.oracle_path)
        self._build_first(Arm.ORACLE, is_linked=is_linked)
        if not control_is_copy:
            self._build_first(Arm.CONTROL, is_linked=is_linked)
        if copy_oracle:
            copy = self.engine.session(self.image, run_id=self.run_id, like=self.sessions[Arm.ORACLE])
            self.as_built[Arm.ORACLE] = self.stack.enter_context(copy)
        if suite.files is not None:
            for remote in self.remotes.values():
                remote.write(suite.files)
        return sources

    def objects(self) -> dict[Arm, str]:
        """A hash over the shared objects of each arm's package as it is installed; empty without any."""
        return {arm: remote.keep_build().objects for arm, remote in self.remotes.items()}

    @contextmanager
    def copied(self, arm: Arm) -> Iterator[tuple[Session, HarnessClient]]:
        """Yield a session that starts as *arm* is now, with what its compiler made, and the harness in it."""
        with self.engine.session(self.image, run_id=self.run_id, like=self.sessions[arm]) as session:
            yield session, self._client(session)

    def build_anew(self, arm: Arm, generator: random.Random) -> KeptBuild:
        """Build *arm* with a random layout: linker padding moves code and data.

        An existing build is relinked if that reproduces its objects; otherwise everything is rebuilt. Raises
        ItemFailure as `build_oracle`.
        """
        code, data = ALIGNMENT * generator.randrange(CODE_STEPS), ALIGNMENT * generator.randrange(DATA_STEPS)
        remote = self.remotes[arm]
        if linkers := self.linkers.get(arm):
            if again := remote.relink(linkers, code=code, data=data):
                return again
            self.log.keep(f"the {arm} cannot be linked again by itself")
        self.linkers[arm] = remote.linkers(code=code, data=data, name=self.folder)
        self._rebuild(arm)
        return remote.keep_build()

    def start(self, arm: Arm, like: Session | None = None) -> None:
        """Open the session of *arm*, a copy of *like* if given, and the harness in it."""
        session = self.stack.enter_context(self.engine.session(self.image, run_id=self.run_id, like=like))
        self.sessions[arm] = session
        self.remotes[arm] = self._client(session)

    def _client(self, session: Session) -> HarnessClient:
        spec = self.image.spec
        return HarnessClient(session, benchmark_dir=spec.benchmark_dir, environment=spec.run_environment)

    def _build_first(self, arm: Arm, *, is_linked: bool) -> None:
        if is_linked:
            self.linkers[arm] = self.remotes[arm].linkers(code=0, data=0, name=self.folder)
        self.log(f"rebuilding the {arm}")
        self._rebuild(arm)

    def _rebuild(self, arm: Arm) -> None:
        """Build *arm*; failures are retried once."""
        build = partial(self._build, arm)
        if arm is Arm.ORACLE:
            build_oracle(build, partial(self._build, Arm.BASE))
        else:
            build_base(build)

    def _build(self, arm: Arm) -> Completed:
        environment = {"FC_KEEPS_COMPILED": "1"}
        if linkers := self.linkers.get(arm):
            # the compiler looks there for its linker first
            environment["COMPILER_PATH"] = linkers
        with self.remotes[arm].restored():
            built = self.sessions[arm].reinstall(timeout=self.limits.build_seconds, environment=environment)
        self.log.keep(f"{arm}: {'rebuilt' if built.ok else 'not built'} in {built.seconds:.1f} s; {describe(built)}")
        return built
