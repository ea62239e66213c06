"""The harness as it is sent: byte for byte the same, run by every interpreter."""

from __future__ import annotations

import ast
import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from importlib import resources
from pathlib import Path

import asv_runner
import pytest

from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.building.suites.archive import archive_for, compiled_archive, harness_archive
from formulacode_dagster.building.suites.questions import Timed
from formulacode_dagster.building.suites.remote import HarnessClient
from formulacode_dagster.models.errors import ConfigurationError
from tests.support.measurement import take


def test_files_are_laid_and_read_byte_by_byte(session):
    remote = HarnessClient(session, benchmark_dir="benchmarks")
    remote.write({"benchmarks/new/data.bin": bytes(range(256))})
    assert remote.read(["benchmarks/new/data.bin", "not/there"]) == {"benchmarks/new/data.bin": bytes(range(256))}


def test_the_archive_is_the_same_every_time():
    assert harness_archive() == harness_archive()


def test_an_interpreter_takes_its_own_bytecode_and_another_one_the_sources(tmp_path):
    archive = tmp_path / "fc_harness.pyz"
    archive.write_bytes(compiled_archive(sys.executable))
    told = (
        "import sys; sys.path.insert(0, sys.argv[1]); import fc_harness.files as m;"
        "print(m.__file__, m.read.__code__.co_filename)"
    )
    done = subprocess.run([sys.executable, "-c", told, archive], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"{archive}/fc_harness/files.pyc", "/fc_harness.pyz/fc_harness/files.py"]
    with zipfile.ZipFile(archive) as sources:
        files = {name: sources.read(name) for name in sources.namelist()}
    assert files["fc_harness/files.pyc"][:4] == importlib.util.MAGIC_NUMBER
    with zipfile.ZipFile(archive, "w") as foreign:
        for name, content in files.items():
            foreign.writestr(name, b"\0\0\r\n" + content[4:] if name.endswith(".pyc") else content)
    done = subprocess.run([sys.executable, "-c", told, archive], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"{archive}/fc_harness/files.py"] * 2


def test_an_interpreter_that_cannot_compile_the_harness_is_named():
    with pytest.raises(ConfigurationError, match="/bin/false cannot compile the harness"):
        compiled_archive("/bin/false")


class InImage:
    """A session of the image *image*, whose commands are counted."""

    compiler = None

    def __init__(self, image, python=sys.executable):
        self.image, self.python, self.ran = image, python, 0

    def run(self, argv, *, timeout, stdin):
        self.ran += 1
        done = subprocess.run(argv, input=stdin, capture_output=True, timeout=timeout)
        return Completed(done.returncode, done.stdout, done.stderr, 0.1)


def test_the_interpreter_of_an_image_compiles_it_once_for_the_image():
    first, second, other, folder = InImage("a"), InImage("a"), InImage("b"), InImage(None)
    archives = [archive_for(session) for session in (first, first, second, other, folder)]
    assert archives == [compiled_archive(sys.executable)] * 4 + [harness_archive()]
    assert [session.ran for session in (first, second, other, folder)] == [1, 0, 1, 0]


@pytest.mark.parametrize("said", [None, "Welcome!", "[]", '{"__main__.pyc": 1}'])
def test_an_image_that_cannot_compile_it_gets_the_sources(tmp_path, said):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n" if said is None else f"#!/bin/sh\necho '{said}'\n")
    python.chmod(0o755)
    assert archive_for(InImage(str(tmp_path), str(python))) == harness_archive()


def test_the_harness_is_written_in_python_3_7():
    for file in resources.files("formulacode_dagster.building.suites").joinpath("harness").iterdir():
        if file.name.endswith(".py"):
            ast.parse(file.read_text(), feature_version=(3, 7))


def other_interpreters():
    """One CPython of each version that the harness must run on, as far as this machine has them."""
    folders = [Path(folder) for folder in os.environ["PATH"].split(":")]
    folders += (Path.home() / ".pyenv" / "versions").glob("3.*/bin")
    for minor in range(7, 15):
        for folder in folders:
            python = folder / f"python3.{minor}"
            if python.exists() and subprocess.run([python, "-c", ""], capture_output=True).returncode == 0:
                yield str(python)
                break


@pytest.mark.slow
def test_every_interpreter_of_this_machine_runs_it(session, lay):
    lay(Path(session.repository), {"benchmarks/bench.py": "def time_it():\n    pass\n"})
    shutil.copytree(Path(asv_runner.__file__).parent, Path(session.repository, "asv_runner"))
    tried = 0
    for python in other_interpreters():
        session.python = python
        remote = HarnessClient(session, benchmark_dir="benchmarks")
        survey = remote.survey(lines={}, limit=5, budget=10)
        session.compiler = python
        compiled = HarnessClient(session, benchmark_dir="benchmarks")
        assert isinstance(take(compiled, survey.benchmarks[0]), Timed)
        session.compiler = None
        tried += 1
    assert tried
