"""Plain asv in the image of a commit, with the arguments that one gives it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from formulacode_dagster.building.engines.protocol import Completed, Engine
from formulacode_dagster.building.suites.harness_output import describe
from formulacode_dagster.building.suites.overlays import SuiteFiles
from formulacode_dagster.building.suites.remote import HarnessClient, environment_of_runs
from formulacode_dagster.measuring.measurement.cores import Cores
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.reasons import FailureKind

from .asv_results import new_result

ASV = "asv>=0.6.1,<0.7"
"""Not among our own dependencies: only who asks for it downloads it."""
SCRIPT = "asv_in_session.py"
ARCHIVE = "asv.zip"
INSTALL_SECONDS = 300.0
INTERLEAVE = "--interleave-rounds"
ROUNDS = "rounds="
ASV_ROUNDS = 2
"""Defaults of asv."""
OURS_TO_SET = frozenset(
    {"--config", "-E", "--environment", "--python", "--set-commit-hash", "-m", "--machine", "--cpu-affinity"}
)


@dataclass
class PlainAsv:
    """Runs asv with *arguments*, those of `asv run`, for at most so many *seconds* a turn of a commit.

    asv interleaves rounds of commits only where it builds them itself. Where that is asked for, each commit has as many
    turns as `-a rounds=` says, of one round each, whose samples are appended to those of the turns before.
    """

    arguments: Sequence[str]
    seconds: float
    uv: str
    run_id: str
    cores: Cores = field(default_factory=Cores)
    turns: int = field(default=1, init=False)
    """Number of runs of each commit."""
    _given: list[str] = field(default_factory=list, init=False)
    _archives: dict[str, bytes] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        """Raises ConfigurationError for options that the caller must not set here."""
        taken = [argument for argument in self.arguments if argument.partition("=")[0] in OURS_TO_SET]
        if taken:
            raise ConfigurationError(
                f"{', '.join(taken)} cannot be given to asv here",
                why="commit, environment and machine are those of the image",
                remedy="Leave it out",
            )
        self._given = list(self.arguments)
        if INTERLEAVE in self._given:
            try:
                rounds = [int(each.rpartition(ROUNDS)[2]) for each in self.arguments if ROUNDS in each]
            except ValueError as error:
                raise ConfigurationError("asv's rounds are not a number", remedy="Write -a rounds=2") from error
            self.turns = rounds[-1] if rounds else ASV_ROUNDS
            self._given = [each for each in self.arguments if each != INTERLEAVE]
            self._given += ["--attribute", f"{ROUNDS}1", "--record-samples"]

    def run(
        self, engine: Engine, image: BuiltImage, sha: str, suite: SuiteFiles, machine: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """The result file and the `benchmarks.json` that asv writes for *sha*, built as *image*.

        Raises ItemFailure (`timeout`, `benchmarks_fail`), OutsideSystemError when asv cannot be had.
        """
        spec = image.spec
        with engine.session(image, run_id=self.run_id) as session:
            remote = HarnessClient(session, benchmark_dir=spec.benchmark_dir, environment=spec.run_environment)
            if suite.files is not None:
                remote.write(suite.files)
            script = session.put(SCRIPT, resources.files(__package__).joinpath(SCRIPT).read_bytes())
            configuration = {
                "version": 1,
                "project": spec.package_name,
                "repo": session.repository,
                "branches": ["HEAD"],
                "environment_type": "existing",
                "pythons": ["same"],
                "benchmark_dir": f"{session.repository}/{spec.benchmark_dir}".rstrip("/"),
            }
            request = {
                "archive": session.put(ARCHIVE, self._archive(spec.python)),
                "configuration": configuration,
                "machine": dict(machine),
                "sha": sha,
                "arguments": self._given,
            }
            with self.cores.reserved(remote.idlest_core) as core:
                completed = session.run(
                    [session.python, script],
                    timeout=self.seconds,
                    stdin=json.dumps({**request, "core": core}).encode(),
                    environment=environment_of_runs(spec.run_environment),
                )
        result, benchmarks = _answer(completed)
        # asv names an environment that exists by its path, which is another in every session
        plain = new_result(sha, int(result.get("date", 0)), spec.python, machine)
        return {**result, **{name: plain[name] for name in ("env_name", "params", "python")}}, benchmarks

    def _archive(self, python: str) -> bytes:
        if python not in self._archives:
            self._archives[python] = asv_archive(self.uv, python)
        return self._archives[python]


def asv_archive(uv: str, python: str) -> bytes:
    """Asv with its requirements for interpreter *python*, and its runner once more by itself, as a zip.

    Raises OutsideSystemError when the package index does not give them.
    """
    with tempfile.TemporaryDirectory(prefix="fc-asv-") as name:
        folder = Path(name)
        command = [uv, "--no-config", "pip", "install", "--quiet", "--target", str(folder), "--python", sys.executable]
        command += ["--python-version", python, "--only-binary", ":all:", ASV]
        done = subprocess.run(command, capture_output=True, timeout=INSTALL_SECONDS, check=False)
        if done.returncode != 0:
            raise OutsideSystemError(
                "package index",
                f"{ASV} cannot be had for Python {python}",
                why=done.stderr.decode(errors="replace").strip()[-500:],
                remedy="Benchmark with our own sampler, without --asv",
            )
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
            for path in sorted(folder.rglob("*")):
                within = path.relative_to(folder)
                if not path.is_file() or "__pycache__" in within.parts or within.parts[0] == "bin":
                    continue
                archive.write(path, f"asv/{within}")
                if within.parts[0] == "asv_runner":
                    archive.write(path, f"runner/{within}")
        return buffer.getvalue()


def _answer(completed: Completed) -> tuple[dict[str, Any], dict[str, Any]]:
    if completed.timed_out:
        raise ItemFailure(FailureKind.TIMEOUT, "asv took too long", log_tail=describe(completed))
    log = describe(completed)
    try:
        answer = json.loads(completed.stdout)
        status, result, benchmarks = answer["status"], answer["result"], answer["benchmarks"]
    except (ValueError, KeyError, TypeError):
        status, result, benchmarks = completed.rc, None, None
    if not (isinstance(result, dict) and isinstance(result.get("results"), dict) and isinstance(benchmarks, dict)):
        why = f"it ended with status {status}"
        raise ItemFailure(FailureKind.BENCHMARKS_FAIL, "asv wrote no results", why=why, log_tail=log)
    if not any(any(value is not None for value in row[0] or ()) for row in result["results"].values()):
        raise ItemFailure(FailureKind.BENCHMARKS_FAIL, "asv measured nothing", log_tail=log)
    return result, benchmarks
