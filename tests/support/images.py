"""Small git repositories with an asv suite: one pure, one with a C extension."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from formulacode_dagster.engines.process.engine import ProcessEngine
from formulacode_dagster.engines.protocol import NO_SUBMODULES, Engine
from formulacode_dagster.images.build import build_and_verify
from formulacode_dagster.models.image import BuildSpec, BuiltImage, EngineName, ResourceLimits
from formulacode_dagster.models.pull_request import ChangedFile, PullRequest
from formulacode_dagster.models.recipe import Command, OnFailure
from formulacode_dagster.specs.spec import INSTRUMENT
from formulacode_dagster.suites.overlays import BASE_SUITE, SuiteFiles
from tests import records
from tests.records import make_image, make_merged, make_pull_request

MONTH = "2026-02"
LIMITS = ResourceLimits(cpus=2, memory_mb=2048, processes=256, build_seconds=240, benchmark_seconds=60)

PURE = {
    "pyproject.toml": """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "tinypure"
version = "1.0"

[tool.setuptools]
packages = ["tinypure"]
""",
    "tinypure/__init__.py": "def total(n):\n    return sum(range(n))\n",
    "benchmarks/__init__.py": "",
    "benchmarks/bench_total.py": """
import tinypure


class TimeTotal:
    params = [10, 100]

    def time_total(self, n):
        tinypure.total(n)


def time_small():
    tinypure.total(3)
""",
    "asv.conf.json": '{"version": 1, "project": "tinypure", "repo": ".", "benchmark_dir": "benchmarks"}',
    ".gitignore": "build/\n*.egg-info/\n",
}

COMPILED = {
    "pyproject.toml": """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "tinyc"
version = "1.0"
""",
    "setup.py": """
from setuptools import Extension, setup

setup(packages=["tinyc"], ext_modules=[Extension("tinyc._fast", ["tinyc/_fast.c"], depends=[])])
""",
    "tinyc/__init__.py": "from tinyc._fast import answer\n",
    "tinyc/answer.h": "#define ANSWER 41\n",
    "tinyc/_fast.c": """
#include <Python.h>
#include "answer.h"
static PyObject *answer(PyObject *self, PyObject *args) { return PyLong_FromLong(ANSWER); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_fast", NULL, -1, methods};
PyMODINIT_FUNC PyInit__fast(void) { return PyModule_Create(&module); }
""",
    "benchmarks/bench_answer.py": "import tinyc\n\n\ndef time_answer():\n    tinyc.answer()\n",
    "benchmarks/__init__.py": "",
    "asv.conf.json": '{"version": 1, "project": "tinyc", "repo": ".", "benchmark_dir": "benchmarks"}',
}


def git(folder: Path, *arguments: str) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "GIT_AUTHOR_NAME": "A",
        "GIT_AUTHOR_EMAIL": "a@example.org",
        "GIT_COMMITTER_NAME": "A",
        "GIT_COMMITTER_EMAIL": "a@example.org",
        "GIT_AUTHOR_DATE": "2026-02-03T04:05:06Z",
        "GIT_COMMITTER_DATE": "2026-02-03T04:05:06Z",
    }
    done = subprocess.run(["git", "-C", str(folder), *arguments], env=environment, capture_output=True, check=True)
    return done.stdout.decode().strip()


def commit(folder: Path, files: dict[str, str], message: str) -> str:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    git(folder, "add", "-A", "-f")
    git(folder, "commit", "-q", "-m", message, "--allow-empty")
    return git(folder, "rev-parse", "HEAD")


@dataclass(frozen=True)
class Sample:
    """A repository with a commit before the base, the base, and the merge of a pull request."""

    name: str
    mirror: Path
    anchor: str
    base: str
    merge: str

    def pull_request(self) -> PullRequest:
        changed = git(self.mirror, "diff", "--name-only", self.base, self.merge).split()
        facts = make_merged(
            month=MONTH,
            repository_id=7,
            repository=f"Acme/{self.name}",
            number=5,
            head_sha=self.merge,
            merge_commit_sha=self.merge,
        )
        return make_pull_request(
            facts,
            base_sha=self.base,
            merge_tree_sha=git(self.mirror, "rev-parse", f"{self.merge}^{{tree}}"),
            files=tuple(ChangedFile(path=path, status="M", additions=1, deletions=1) for path in changed),
        )


def make_sample(folder: Path, name: str, files: dict[str, str], oracle: dict[str, str]) -> Sample:
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    # commits of its own, and so images of its own: other tests of the same name may use the same daemon
    anchor = commit(folder, {"README.md": f"hello {uuid.uuid4()}\n"}, "start")
    git(folder, "tag", "v0.1")
    base = commit(folder, files, "base")
    git(folder, "tag", "v1.0")
    git(folder, "tag", "test")
    merge = commit(folder, oracle, "oracle (#5)")
    git(folder, "tag", "v2.0")
    mirror = folder.with_suffix(".git")
    git(folder.parent, "clone", "-q", "--mirror", str(folder), str(mirror))
    return Sample(name, mirror, anchor, base, merge)


def with_oracle(sample: Sample, folder: Path, oracle: dict[str, str]) -> Sample:
    """*sample* with another change on the same base; its repository is made in *folder*."""
    work = folder / "work"
    folder.mkdir(parents=True)
    git(folder, "clone", "-q", str(sample.mirror), str(work))
    git(work, "checkout", "-q", "-B", "main", sample.base)
    merge = commit(work, oracle, "oracle (#5)")
    mirror = folder / sample.mirror.name
    git(folder, "clone", "-q", "--mirror", str(work), str(mirror))
    return replace(sample, mirror=mirror, merge=merge)


@pytest.fixture(scope="session")
def pure(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    oracle = {"tinypure/__init__.py": "def total(n):\n    return n * (n - 1) // 2\n"}
    return make_sample(tmp_path_factory.mktemp("pure") / "tinypure", "tinypure", PURE, oracle)


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Sample:
    oracle = {"tinyc/answer.h": "#define ANSWER 42\n"}
    return make_sample(tmp_path_factory.mktemp("compiled") / "tinyc", "tinyc", COMPILED, oracle)


@pytest.fixture(scope="session")
def lock() -> str:
    """What `uv pip compile --generate-hashes` gives for setuptools; asking the index each time would cost seconds."""
    return (
        "setuptools==75.3.0 \\\n"
        "    --hash=sha256:f2504966861356aa38616760c0f66568e535562374995367b4e69c7143cf6bcd \\\n"
        "    --hash=sha256:fba5dd4d766e97be1b1681d98712680ae8f2f26d7881245f2ce9e40714f1a686\n"
    )


def make_spec(sample: Sample, lock: str, *, python: str = "3.11", os_image: str = "", **more: object) -> BuildSpec:
    fields: dict[str, object] = {
        "task_id": f"Acme__{sample.name}-5",
        "repository": f"Acme/{sample.name}",
        "repository_id": 7,
        "base_sha": sample.base,
        "anchor_sha": sample.anchor,
        "python": python,
        "os_image": os_image or "fc-os:py{python}",
        "instrument": INSTRUMENT,
        "package_name": sample.name,
        **more,
    }
    return records.make_spec(lock, **fields)


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> ProcessEngine:
    return ProcessEngine(tmp_path_factory.mktemp("process-engine"), LIMITS)


def build_sample(
    engine: Engine,
    spec: BuildSpec,
    sample: Sample,
    *,
    run_id: str = "run",
    suite: SuiteFiles = BASE_SUITE,
    submodules: Mapping[str, Path] = NO_SUBMODULES,
    force: bool = False,
) -> tuple[BuiltImage, str]:
    """The image of *sample*, verified, and the build's whole log; raises what fails, a gate that does not hold too."""
    built = build_and_verify(
        engine,
        spec,
        mirror=sample.mirror,
        pr=sample.pull_request(),
        run_id=run_id,
        suite=suite,
        submodules=submodules,
        force=force,
    )
    if built.failure is not None:
        raise built.failure
    return built.image, built.log


def as_image(engine: EngineName, spec: BuildSpec, outcome: object) -> BuiltImage:
    from formulacode_dagster.engines.protocol import BuildOutcome

    assert isinstance(outcome, BuildOutcome)
    return make_image(
        month=MONTH,
        repository_id=7,
        number=5,
        engine=engine,
        spec=spec,
        tag=outcome.tag,
        digest=outcome.digest,
        location=outcome.location,
        size_bytes=outcome.size_bytes,
        build_seconds=outcome.seconds,
        tiers=outcome.tiers,
    )


@pytest.fixture(scope="session")
def pure_image(engine: ProcessEngine, pure: Sample, lock: str) -> BuiltImage:
    spec = make_spec(pure, lock)
    return as_image(EngineName.PROCESS, spec, engine.build(spec, mirror=pure.mirror, run_id="test"))


@pytest.fixture(scope="session")
def compiled_image(engine: ProcessEngine, compiled: Sample, lock: str) -> BuiltImage:
    spec = make_spec(compiled, lock)
    return as_image(EngineName.PROCESS, spec, engine.build(spec, mirror=compiled.mirror, run_id="test"))


def command(*argv: str, on_failure: OnFailure = OnFailure.STOP, folder: str = ".") -> Command:
    """A build command as a repository's configuration would give it."""
    return Command(argv=argv, folder=folder, on_failure=on_failure, source="test")
