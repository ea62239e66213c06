"""Small git repositories with an asv suite: one pure, one with a C extension."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.images.build import build_and_verify
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.building.specs.spec import INSTRUMENT
from formulacode_dagster.building.suites.overlays import BASE_SUITE, SuiteFiles
from formulacode_dagster.models.image import BuildSpec, BuiltImage, EngineName, ResourceLimits
from formulacode_dagster.models.pull_request import ChangedFile, PullRequest
from formulacode_dagster.models.recipe import Command, OnFailure
from tests import records
from tests.records import make_image, make_merged, make_pull_request
from tests.support.git_world import MOMENT, BareRepository, git

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
    """A sample whose mirror is *folder* with `.git` behind it."""
    made = BareRepository(folder.with_suffix(".git"))
    # commits of its own, and so images of its own: other tests of the same name may use the same daemon
    anchor = made.add("start", files={"README.md": f"hello {uuid.uuid4()}\n"})
    base = made.add("base", files=files)
    merge = made.add("oracle (#5)", files=oracle)
    for tag, mark in {"v0.1": anchor, "v1.0": base, "test": base, "v2.0": merge}.items():
        made.ref(f"refs/tags/{tag}", mark)
    shas = made.write()
    return Sample(name, made.path, shas[anchor], shas[base], shas[merge])


def with_oracle(sample: Sample, folder: Path, oracle: dict[str, str]) -> Sample:
    """*sample* with another change on the same base; its repository is made in *folder*."""
    made = BareRepository(shutil.copytree(sample.mirror, folder / sample.mirror.name))
    merge = made.commit("oracle (#5)", MOMENT, sample.base, files=oracle)
    return replace(sample, mirror=made.path, merge=made.write()[merge])


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
    """Output of `uv pip compile --generate-hashes` for setuptools; asking the index each time takes seconds."""
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
    submodules: Mapping[str, Path] | None = None,
    force: bool = False,
) -> tuple[BuiltImage, str]:
    """The image of *sample*, verified, and the build's whole log; raises what fails, a gate that does not hold too."""
    built = build_and_verify(
        engine,
        spec,
        Origins(sample.mirror, submodules or {}),
        pr=sample.pull_request(),
        run_id=run_id,
        suite=suite,
        force=force,
    )
    if built.failure is not None:
        raise built.failure
    return built.image, built.log


def as_image(engine: EngineName, spec: BuildSpec, outcome: object) -> BuiltImage:
    from formulacode_dagster.building.engines.protocol import BuildOutcome

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
    return as_image(EngineName.PROCESS, spec, engine.build(spec, Origins(pure.mirror)))


@pytest.fixture(scope="session")
def compiled_image(engine: ProcessEngine, compiled: Sample, lock: str) -> BuiltImage:
    spec = make_spec(compiled, lock)
    return as_image(EngineName.PROCESS, spec, engine.build(spec, Origins(compiled.mirror)))


def command(*argv: str, on_failure: OnFailure = OnFailure.STOP, folder: str = ".") -> Command:
    """A build command as a repository's configuration would give it."""
    return Command(argv=argv, folder=folder, on_failure=on_failure, source="test")
