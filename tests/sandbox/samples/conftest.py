from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from sandbox.samples import GeneratedPullRequest, SampleSet
from tests.support.git_world import git_bytes

RUN_BENCHMARK = Path(__file__).with_name("run_benchmark.py")


@pytest.fixture(scope="session")
def git(samples: SampleSet) -> Callable[..., bytes]:
    """Runs git on one of the sample repositories: `git("owner/name", "log")`."""

    def run(repository: str, *arguments: str) -> bytes:
        return git_bytes(samples.repository(repository), *arguments)

    return run


@pytest.fixture(scope="session")
def patch_of(git: Callable[..., bytes]) -> Callable[[GeneratedPullRequest], bytes]:
    """The patch of a pull request: what leads from its base to the tree after the merge."""

    @cache
    def patch(pull_request: GeneratedPullRequest) -> bytes:
        repository = pull_request.item.partition("#")[0]
        shas = (pull_request.base_sha, pull_request.merge_commit_sha)
        return git(repository, "diff", "--binary", "--full-index", "-M", *shas)

    return patch


@pytest.fixture
def seconds_of(git: Callable[..., bytes], tmp_path: Path) -> Callable[..., float]:
    """Times a benchmark at a commit, with the suite of another: `seconds_of("owner/name", sha, benchmark, suite=sha)`.

    C extensions are compiled first.
    """

    def checkout(repository: str, commit: str, suite: str) -> tuple[Path, Path]:
        folder = tmp_path / repository.partition("/")[2] / commit
        files = git(repository, "ls-tree", "-r", "--name-only", suite).decode().splitlines()
        benchmarks = next(name for name in files if "/bench_" in name).rpartition("/")[0]
        if not folder.exists():
            for archived in (git(repository, "archive", commit), git(repository, "archive", suite, benchmarks)):
                with tarfile.open(fileobj=io.BytesIO(archived)) as archive:
                    archive.extractall(folder, filter="data")
            for source in folder.glob("*/*.c"):
                _compile(source)
        return folder, folder / benchmarks

    def seconds(repository: str, commit: str, benchmark: str, *, suite: str) -> float:
        code, benchmarks = checkout(repository, commit, suite)
        command = [sys.executable, str(RUN_BENCHMARK), str(benchmarks), benchmark]
        paths = os.pathsep.join((str(code / "src"), str(code)))
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
        return float(subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, timeout=60).stdout)

    return seconds


def _compile(source: Path) -> None:
    target = source.with_name(f"{source.stem}{sysconfig.get_config_var('EXT_SUFFIX')}")
    include = sysconfig.get_path("include")
    flags = shlex.split("-shared -fPIC -O2 -Wall -Wno-unused-parameter")
    subprocess.run(["cc", *flags, f"-I{include}", str(source), "-o", str(target)], check=True, capture_output=True)
