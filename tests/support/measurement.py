"""A session that is a folder and an interpreter, for what needs no built image."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.building.suites.questions import (
    NotTimed,
    ProcessSetting,
    SurveyedBenchmark,
    Timed,
    TimedBenchmark,
)
from formulacode_dagster.building.suites.remote import HarnessClient
from formulacode_dagster.measuring.measurement.plan import SamplingPlan
from formulacode_dagster.measuring.measurement.statistics.verdict import judge
from formulacode_dagster.models.image import BuiltImage, EngineName
from formulacode_dagster.models.measurement import Arm, Measurement, RandomizationUnit, Sample
from formulacode_dagster.models.pull_request import ChangedFile, PullRequest
from tests.records import make_image, make_merged, make_pull_request, make_spec
from tests.support.git_world import patch_between

_STARTING = threading.Lock()
"""A process that is starting holds what others are writing open: such a program could not be run."""


class FolderSession:
    """Runs commands in a copy of a checkout, with the checkout on the import path."""

    def __init__(self, folder: Path, build: Callable[[Path], Completed] | None, python: str) -> None:
        self.python = self.compiler = python
        self.image = None
        self.folder = folder
        self.repository = str(folder / "repository")
        self.harness = str(folder / "harness")
        self.tests = str(folder / "tests")
        self.reinstalls = 0
        self._build = build
        self._home = folder / "home"
        Path(self.harness).mkdir()
        self._home.mkdir()

    def put(self, name: str, content: bytes, *, executable: bool = False) -> str:
        path = Path(self.harness, name)
        with _STARTING:
            path.write_bytes(content)
        path.chmod(0o555 if executable else 0o644)
        return str(path)

    def run(
        self,
        argv: Sequence[str],
        *,
        timeout: float,
        cwd: str | None = None,
        environment: Mapping[str, str] | None = None,
        stdin: bytes | None = None,
    ) -> Completed:
        start = time.monotonic()
        own = {"PYTHONPATH": self.repository, "TMPDIR": str(self.folder)}
        with _STARTING:
            process = subprocess.Popen(
                list(argv),
                # as in an engine's sessions, what a command leaves in its folder is in no checkout
                cwd=cwd or self._home,
                env={**os.environ, **own, **(environment or {})},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        try:
            stdout, stderr = process.communicate(stdin, timeout=timeout)
            timed_out = False
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            stdout, stderr = process.communicate()
            timed_out = True
        return Completed(process.returncode, stdout, stderr, time.monotonic() - start, timed_out)

    def reinstall(self, *, timeout: float, environment: Mapping[str, str] | None = None) -> Completed:
        self.reinstalls += 1
        if self._build is None:
            return Completed(0, b"", b"", 0.0)
        return self._build(Path(self.repository))


class FolderEngine:
    """Opens sessions on copies of one folder, and remembers them in the order they were opened."""

    name = EngineName.PROCESS

    def __init__(
        self, source: Path, work: Path, build: Callable[[Path], Completed] | None = None, *, python: str
    ) -> None:
        self.sessions: list[FolderSession] = []
        self._source, self._work, self._build, self._python = source, work, build, python

    @contextmanager
    def session(self, image: BuiltImage, *, run_id: str, like: FolderSession | None = None) -> Iterator[FolderSession]:
        folder = Path(tempfile.mkdtemp(prefix="session", dir=self._work))
        shutil.copytree(like.repository if like else self._source, folder / "repository")
        session = FolderSession(folder, self._build, self._python)
        self.sessions.append(session)
        try:
            yield session
        finally:
            shutil.rmtree(folder)


def _lay(folder: Path, files: Mapping[str, str]) -> Path:
    """Write *files* below *folder*."""
    for path, text in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return folder


def _git_patch(folder: Path, before: Mapping[str, str], after: Mapping[str, str | None]) -> bytes:
    """Git's patch from *before* to *after*; None deletes a file. *folder* holds *before* when it returns."""
    _lay(folder, before)
    whole = {path: text for path, text in {**before, **after}.items() if text is not None}
    with tempfile.TemporaryDirectory() as scratch:
        return patch_between(Path(scratch, "patch.git"), before, whole)


def _pull_request(*paths: str) -> PullRequest:
    facts = make_merged(month="2026-02", repository_id=7, repository="acme/fast", number=12)
    return make_pull_request(facts, files=tuple(ChangedFile(path=path, status="M") for path in paths))


def _samples(**arms: Sequence[float]) -> tuple[Sample, ...]:
    """Samples of the arms named, one a round."""
    return tuple(
        Sample(arm=Arm(arm), round=number, order=0, value=seconds, calls=10)
        for arm, values in arms.items()
        for number, seconds in enumerate(values)
    )


def _measurement(samples: Mapping[str, Sequence[Sample]], look: int = 1, /, **changes: object) -> Measurement:
    """The row that `measure_task` would make of *samples* by benchmark at a look, with *changes*."""
    rule = SamplingPlan().rule(RandomizationUnit.PROCESS)
    row = Measurement(
        month="2026-02",
        repository_id=7,
        number=12,
        engine="process",
        image_digest="sha256:1",
        instrument=("asv_runner==0.2.0",),
        suite="base",
        **judge(samples, rule, look).figures(),
        rule=rule,
        look=look,
        rounds=rule.looks[look].units,
        machine="a machine",
    )
    return row.model_copy(update=changes)


def take(remote: HarnessClient, benchmark: SurveyedBenchmark, seconds: float = 0.01) -> Timed | NotTimed:
    """A sample of *benchmark*, taken as its survey says, or why there is none."""
    asked = [TimedBenchmark(benchmark, benchmark.isolate, benchmark.setup_seconds)]
    return remote.time(asked, seconds=seconds, setting=ProcessSetting(hash_seed=1)).samples[0]


@pytest.fixture
def session(tmp_path: Path, suite_python: str) -> FolderSession:
    (tmp_path / "session").mkdir()
    (tmp_path / "session" / "repository").mkdir()
    return FolderSession(tmp_path / "session", None, suite_python)


@pytest.fixture
def lay() -> Callable[[Path, Mapping[str, str]], Path]:
    return _lay


@pytest.fixture
def git_patch() -> Callable[[Path, Mapping[str, str], Mapping[str, str | None]], bytes]:
    return _git_patch


@pytest.fixture
def pull_request() -> Callable[..., PullRequest]:
    return _pull_request


@pytest.fixture
def image() -> BuiltImage:
    return make_image(
        month="2026-02",
        repository_id=7,
        number=12,
        engine=EngineName.PROCESS,
        spec=make_spec(task_id="acme__fast-12", repository="acme/fast", instrument=("asv_runner==0.2.0",)),
        digest="sha256:1",
    )


@pytest.fixture
def samples() -> Callable[..., tuple[Sample, ...]]:
    return _samples


@pytest.fixture
def measurement() -> Callable[..., Measurement]:
    return _measurement


@pytest.fixture
def engine_of(tmp_path: Path, suite_python: str) -> Callable[..., FolderEngine]:
    """An engine whose images are all the folder given."""

    def make(source: Path, build: Callable[[Path], Completed] | None = None) -> FolderEngine:
        work = tmp_path / "sessions"
        work.mkdir(exist_ok=True)
        return FolderEngine(source, work, build, python=suite_python)

    return make
