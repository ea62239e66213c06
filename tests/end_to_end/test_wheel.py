"""The installed wheel finds all that ships with it, from any folder. The other tests here use its demo and its UI."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.network


def test_preflight_of_the_wheel_goes_through_every_system(new_home) -> None:
    ran = new_home.fc_data("preflight")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    systems = [line.split()[1] for line in ran.stdout.splitlines()]
    asked = ["github", "llm", "containers", "agents", "registry", "hub", "alerts"]
    assert systems == ["programs", "settings", "postgres", *asked]


def test_nothing_of_a_checkout_is_imported(fc_data: Path, tmp_path: Path) -> None:
    code = "import assets, formulacode_dagster, resources, sandbox; print(*(p.__path__[0] for p in "
    code += "(assets, formulacode_dagster, resources, sandbox)), sep=chr(10))"
    told = subprocess.check_output([fc_data.with_name("python"), "-c", code], cwd=tmp_path, text=True)
    assert all(Path(line).is_relative_to(fc_data.parents[1]) for line in told.splitlines())


def test_what_is_no_python_is_in_the_wheel(fc_data: Path, tmp_path: Path) -> None:
    code = "from formulacode_dagster.operating.files.shipped import shipped; import sys; print(all(map("
    code += "lambda name: shipped(name).exists(), sys.argv[1:])))"
    names = ["sql/migrations", "dockerfiles/base.Dockerfile", "dockerfiles/scripts", "dagster.yaml", "workspace.yaml"]
    told = subprocess.check_output([fc_data.with_name("python"), "-c", code, *names], cwd=tmp_path, text=True)
    assert told == "True\n"
