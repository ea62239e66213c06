"""Every field of a build spec takes effect in the image, with either engine."""

from __future__ import annotations

import hashlib
import re
from dataclasses import replace
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.failures import BuildFailure
from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuildSpec
from formulacode_dagster.models.recipe import ExtraFile, FilePatch, InstallMode, Isolation, Submodule
from tests.support.docker import OS_IMAGE
from tests.support.git_world import MODULE, MOMENT, BareRepository
from tests.support.images import LIMITS, Sample, as_image, build_sample, command, make_sample, make_spec

IN_DOCKER = pytest.mark.docker, pytest.mark.variant("fields of a build in Docker", most=1)
ENGINES = ["process", pytest.param("docker", marks=IN_DOCKER)]

pytestmark = pytest.mark.network

NAME = "tinyparts"

PARTS = {
    "setup.py": """
import subprocess
from setuptools import Extension, setup

import helper_from_file

def told(*words):
    return subprocess.run(words, stdout=subprocess.PIPE, check=True).stdout.decode()

print("version", told("git", "describe", "--tags", "--dirty").strip())
print("submodules", told("git", "submodule", "status"))
# as some builds do: neither may reach the checkout, whose settings are verified
told("git", "submodule", "init")
told("git", "tag", "of-the-build")
setup(
    name="tinyparts",
    version="1.0",
    packages=["tinyparts"],
    ext_modules=[Extension("tinyparts._fast", ["tinyparts/_fast.c"], include_dirs=["lib/numbers"])],
    entry_points={"console_scripts": ["tinyparts = tinyparts:main"]},
    scripts=["tiny-script"],
)
""",
    ".gitmodules": '[submodule "numbers"]\n\tpath = lib/numbers\n\turl = ../numbers.git\n',
    "tiny-script": "#!/usr/bin/env python\nimport tinyparts\ntinyparts.main()\n",
    "tinyparts/__init__.py": "from tinyparts._fast import answer\n\n\ndef main():\n    print('answer', answer())\n",
    "tinyparts/_fast.c": """
#include <Python.h>
#include "answer.h"
static PyObject *answer(PyObject *self, PyObject *args) { return PyLong_FromLong(ANSWER + 0); }
static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_fast", NULL, -1, methods};
PyMODINIT_FUNC PyInit__fast(void) { return PyModule_Create(&module); }
""",
    "benchmarks/bench_answer.py": "import tinyparts\n\n\ndef time_answer():\n    tinyparts.answer()\n",
    "benchmarks/__init__.py": "",
    "asv.conf.json": '{"version": 1, "project": "tinyparts", "repo": ".", "benchmark_dir": "benchmarks"}',
}
PATCH = """--- a/tinyparts/_fast.c
+++ b/tinyparts/_fast.c
@@ -2,4 +2,4 @@
 #include <Python.h>
 #include "answer.h"
-static PyObject *answer(PyObject *self, PyObject *args) { return PyLong_FromLong(ANSWER + 0); }
+static PyObject *answer(PyObject *self, PyObject *args) { return PyLong_FromLong(ANSWER + 1); }
 static PyMethodDef methods[] = {{"answer", answer, METH_NOARGS, ""}, {NULL, NULL, 0, NULL}};
"""


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    if request.param == "process":
        return ProcessEngine(tmp_path / "engine", LIMITS)
    return request.getfixturevalue("make_docker_engine")()


@pytest.fixture
def numbers(tmp_path: Path) -> Sample:
    return make_sample(tmp_path / "numbers", "numbers", {"answer.h": "#define ANSWER 40\n"}, {"README.md": "later"})


@pytest.fixture
def parts(tmp_path: Path, numbers: Sample) -> Sample:
    """A repository whose base has a submodule."""
    sample = make_sample(tmp_path / NAME, NAME, {"README.md": "x"}, {"README.md": "y"})
    made = BareRepository(sample.mirror)
    submodule = {"lib/numbers": (MODULE, numbers.base.encode())}
    base = made.commit("parts", MOMENT, sample.base, files={**PARTS, **submodule})
    merge = made.add("oracle (#5)", files={"tinyparts/__init__.py": PARTS["tinyparts/__init__.py"] + "\n"})
    shas = made.write()
    return replace(sample, base=shas[base], merge=shas[merge])


def parts_spec(parts: Sample, numbers: Sample, lock: str, **more: object) -> BuildSpec:
    fields: dict[str, object] = {
        "os_image": OS_IMAGE,
        "submodules": (Submodule(path="lib/numbers", repository="Acme/numbers", sha=numbers.base),),
        "patches": (FilePatch(diff=PATCH, reason="test"),),
        "files": (ExtraFile(path="helper_from_file.py", content="print('helped')\n", reason="test"),),
        **more,
    }
    return make_spec(parts, lock, **fields)


def test_submodules_patches_and_files_are_built_but_not_in_the_checkout(
    engine: Engine, parts: Sample, numbers: Sample, lock: str
) -> None:
    spec = parts_spec(parts, numbers, lock, build_arguments=("--build-option=--build-number=7",))
    image, log = build_sample(
        engine,
        spec,
        parts,
        run_id="fields",
        submodules={"Acme/numbers": numbers.mirror},
        # a daemon that has built it before would leave what the step says out of the log
        force=True,
    )
    assert "helped" in log
    assert re.search(r"version v1\.0-1-g[0-9a-f]+\n", log), "what is laid over a commit does not make it a dirty one"
    assert re.search(rf"submodules  {numbers.base} lib/numbers", log)
    with engine.session(image, run_id="fields") as session:
        ask = [session.python, "-c", "import tinyparts; tinyparts.main()"]
        assert session.run(ask, timeout=30).stdout == b"answer 41\n"
        wheel = "import importlib.metadata as m; print(m.distribution('tinyparts').read_text('WHEEL'))"
        assert b"Build: 7\n" in session.run([session.python, "-c", wheel], timeout=30).stdout
        status = session.run(["git", "status", "--porcelain", "--ignored"], timeout=30, cwd=session.repository)
        assert (status.rc, status.stdout) == (0, b"")
        change = ["sed", "-i", "s/ANSWER + 0/ANSWER + 0 + 0/;s/self, Py/me, Py/", "tinyparts/_fast.c"]
        assert session.run(["sed", "-i", "$a /**/", "tinyparts/_fast.c"], timeout=30, cwd=session.repository).ok
        rebuilt = session.reinstall(timeout=120)
        assert rebuilt.ok, rebuilt.stderr
        assert session.run(ask, timeout=30).stdout == b"answer 41\n", "a rebuild has submodules and patches, too"
        assert session.run(change, timeout=30, cwd=session.repository).ok
        assert b"patch does not apply" in session.reinstall(timeout=120).stderr
    toolchain = image.toolchain
    assert toolchain.python.startswith("3.11.")
    assert set(toolchain.tools) >= {"uv", "git", "asv_runner"}
    assert toolchain.flags["CFLAGS"]
    assert "cc" in toolchain.compiler.lower()


def test_a_package_is_built_apart_from_what_it_runs_in_by_setup_py_install(
    engine: Engine, parts: Sample, numbers: Sample, lock: str
) -> None:
    spec = parts_spec(
        parts,
        numbers,
        "",
        lock_sha256=hashlib.sha256(b"").hexdigest(),
        build_lock=lock,
        isolation=Isolation.APART,
        install_mode=InstallMode.SETUP_PY,
        build_environment={"CFLAGS": "-O1"},
    )
    image, log = build_sample(
        engine,
        spec,
        parts,
        run_id="fields",
        submodules={"Acme/numbers": numbers.mirror},
        # a daemon that has built it before would leave what the step says out of the log
        force=True,
    )
    assert [tier.name for tier in image.tiers] == ["base", "repo", "env", "task"]
    assert "running install" in log
    assert image.toolchain.flags["CFLAGS"] == "-O1"
    with engine.session(image, run_id="fields") as session:
        assert not session.run([session.python, "-c", "import setuptools"], timeout=30).ok
        for program in ("tinyparts", "tiny-script"):
            path = str(Path(session.python).with_name(program))
            assert session.run([path], timeout=30).stdout == b"answer 41\n"
        assert session.reinstall(timeout=120).ok


def test_a_rebuild_leaves_the_first_image_where_it_is(engine: Engine, pure: Sample, lock: str) -> None:
    spec = make_spec(pure, lock, os_image=OS_IMAGE, repository=f"Acme/{NAME}")
    first = engine.build(spec, Origins(pure.mirror))
    again = engine.build(spec, Origins(pure.mirror), rebuild=True)
    assert [tier.tag for tier in again.tiers][:2] == [tier.tag for tier in first.tiers][:2]
    assert [tier.tag for tier in again.tiers][2:] == [f"{tier.tag}-again" for tier in first.tiers][2:]
    assert "+ tinypure==1.0" in again.log
    kept = engine.build(spec, Origins(pure.mirror))
    assert (kept.digest, kept.tag) == (first.digest, first.tag)
    engine.remove_rebuild(spec)


def test_a_submodule_without_a_mirror_and_a_path_outside_are_refused(
    tmp_path: Path, parts: Sample, numbers: Sample, lock: str
) -> None:
    engine = ProcessEngine(tmp_path / "engine", LIMITS)
    with pytest.raises(ItemFailure, match="no mirror was given"):
        engine.build(parts_spec(parts, numbers, lock), Origins(parts.mirror))
    stray = (ExtraFile(path="../stray", content="", reason="test"),)
    with pytest.raises(ItemFailure, match="not a path in the repository"):
        engine.build(parts_spec(parts, numbers, lock, files=stray), Origins(parts.mirror))
    outside = command("make", folder="../..")
    with pytest.raises(ItemFailure, match="not a path in the repository"):
        engine.build(parts_spec(parts, numbers, lock, commands=(outside,)), Origins(parts.mirror))


def test_a_patch_that_does_not_apply_fails_the_build(tmp_path: Path, pure: Sample, lock: str) -> None:
    engine = ProcessEngine(tmp_path / "engine", LIMITS)
    spec = make_spec(pure, lock, patches=(FilePatch(diff=PATCH, reason="test"),))
    with pytest.raises(BuildFailure, match="install-package") as caught:
        engine.build(spec, Origins(pure.mirror))
    assert "tinyparts/_fast.c" in caught.value.log


@pytest.mark.parametrize("kind", ENGINES)
def test_a_build_starts_as_many_compilers_as_it_has_cores(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, pure: Sample, lock: str
) -> None:
    limits = LIMITS.model_copy(update={"cpus": 1.0})
    if kind == "process":
        engine: Engine = ProcessEngine(tmp_path / "engine", limits)
    else:
        engine = request.getfixturevalue("make_docker_engine")(limits=limits)
    counts = "import os; print('counted', os.cpu_count(), 'usable', len(os.sched_getaffinity(0)))"
    commands = [command("env"), command("python", "-c", counts)]
    spec = make_spec(pure, lock, commands=commands, build_environment={"MAX_JOBS": "7"})
    built = engine.build(spec, Origins(pure.mirror))
    assert "counted 1 usable 1" in built.log
    for line in (
        "MAKEFLAGS=-j1",
        "CMAKE_BUILD_PARALLEL_LEVEL=1",
        "NPY_NUM_BUILD_JOBS=1",
        "PYTHON_CPU_COUNT=1",
        "MAX_JOBS=7",
    ):
        assert line in built.log, line
    with engine.session(as_image(engine.name, spec, built), run_id="run") as session:
        assert session.run(["printenv", "PYTHON_CPU_COUNT"], timeout=30).stdout == b"1\n"
        counted = session.run(["env", "-u", "PYTHON_CPU_COUNT", "python", "-c", counts], timeout=30).stdout
    # Docker's sessions have the machine's /sys
    assert kind == "docker" or counted == b"counted 1 usable 1\n"
