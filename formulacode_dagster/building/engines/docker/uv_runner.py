"""Reads source distributions in a build step: their requirements may depend on running their code.

The step has the limits, the network and the secrets of every other one, and leaves no image.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from formulacode_dagster.building.engines.failures import (
    code_of_step,
    docker_is_dead,
    docker_outage,
    docker_reports_full_disk,
    failure_of,
    tail,
)
from formulacode_dagster.building.engines.free_space import SpaceWatch
from formulacode_dagster.building.engines.scratch import scratch_folder
from formulacode_dagster.building.engines.uv_runner import PYLOCK, UvCall, UvResult
from formulacode_dagster.building.specs import recipes
from formulacode_dagster.building.specs.spec import PlainBase, instrument_for
from formulacode_dagster.models.errors import FormulaCodeError

from .daemon import DockerDaemon
from .settings import DockerBuildSettings
from .tier import TierBuilder

MOST_BYTES = 32 << 20
"""Limit of a lock, and of uv's output: untrusted code may write there too."""
_UNKNOWN = -1


@dataclass(frozen=True)
class DockerUvRunner:
    """Implements `UvRunner` with BuildKit."""

    daemon: DockerDaemon
    settings: DockerBuildSettings
    os_image: str
    name = "docker"

    def compile(self, call: UvCall, *, python: str, index: Mapping[str, str], timeout: float) -> UvResult:
        """Make *call* on the `base` tier of *python*.

        Raises BuildFailure (`interpreter`, …) if there is no such tier, or (`build`) if the code breaks the step;
        OutsideSystemError when Docker is gone or the disk is full.
        """
        self.daemon.require_buildx()
        parts = PlainBase(python, self.os_image, instrument_for(python))
        base = TierBuilder(self.daemon, self.settings, f"Python {python}").base(parts)
        settings = replace(self.settings, index={**self.settings.index, **index})
        space = SpaceWatch(self.daemon.data_root)
        with scratch_folder() as folder, settings.options() as options:
            _write(call, folder / "question")
            answer = folder / "answer"
            # never out of the cache: an index that did not answer may do so now
            command = ["buildx", "build", "--progress", "plain", "--no-cache", "--output", f"type=local,dest={answer}"]
            command += ["--file", str(recipes.dockerfile("read")), f"--build-arg=BASE_IMAGE={base.tag}"]
            with space:
                done = self.daemon.run([*command, *options, str(folder / "question")], timeout=timeout)
            if done.timed_out:
                return UvResult(_UNKNOWN, "", done.stderr.decode(errors="replace"), timed_out=True)
            if not done.ok:
                log = done.stderr.decode(errors="replace")
                raise _lost(python, log, seconds=timeout, disk_was_full=space.was_full)
            return _answer(answer)


def _write(call: UvCall, folder: Path) -> None:
    (folder / "files").mkdir(parents=True)
    for name, text in call.files.items():
        (folder / "files" / name).write_text(text, encoding="utf-8")
    (folder / "arguments").write_text("".join(f"{argument}\n" for argument in call.arguments), encoding="utf-8")
    (folder / "requirements").write_text(call.requirements, encoding="utf-8")


def _answer(folder: Path) -> UvResult:
    """Return the content of *folder*, written by untrusted code."""
    said, pylock = _read(folder, "rc").strip(), _read(folder, PYLOCK)
    rc = int(said) if re.fullmatch(r"\d{1,3}", said) else _UNKNOWN
    return UvResult(rc if pylock or rc else _UNKNOWN, pylock, _read(folder, "log"))


def _read(folder: Path, name: str) -> str:
    path = folder / name
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_BYTES:
        return ""
    # as it is: a carriage return of the code's would begin a line of uv's
    return path.read_bytes().decode("utf-8", "replace")


def _lost(python: str, log: str, *, seconds: float, disk_was_full: bool) -> FormulaCodeError:
    what = f"reading source distributions with Python {python}"
    if docker_is_dead(log):
        return docker_outage(what)
    # never blamed on the index, whatever the log says: untrusted code must not stop a stage by its output
    return failure_of(
        what,
        stage="lock",
        log=log,
        online=False,
        timed_out=False,
        seconds=seconds,
        rc=code_of_step(tail(log)),
        disk_is_full=disk_was_full or docker_reports_full_disk(log),
    )
