from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from formulacode_dagster.building.specs.recipes import TIERS, dockerfile, recipe_hash, recipes_folder, script
from formulacode_dagster.models.errors import ConfigurationError

DOCKERFILES = (*TIERS, "read")
SCRIPTS = sorted((recipes_folder() / "scripts").glob("[!_]*"))
OF_SHELL = [path for path in SCRIPTS if path.suffix != ".py"]


def tool(name: str) -> str:
    return str(Path(sys.executable).parent / name)


def test_dockerfiles_pass_hadolint() -> None:
    files = [str(dockerfile(name)) for name in DOCKERFILES]
    done = subprocess.run([tool("hadolint"), *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_scripts_pass_shellcheck() -> None:
    done = subprocess.run([tool("shellcheck"), *map(str, OF_SHELL)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", [*OF_SHELL, *map(dockerfile, DOCKERFILES)], ids=lambda path: path.name)
def test_no_failure_is_swallowed(path: Path) -> None:
    text = path.read_text()
    assert "|| true" not in text
    assert path.suffix == ".Dockerfile" or "set -euo pipefail" in text


@pytest.mark.parametrize("name", DOCKERFILES)
def test_a_cache_that_code_under_build_can_write_is_no_other_repositorys(name: str) -> None:
    """The default id of a cache is its folder, which all builds of a daemon share."""
    for stage in re.split(r"^FROM ", dockerfile(name).read_text(), flags=re.MULTILINE):
        for mount in re.findall(r"--mount=type=cache,(\S*uid=1000\S*)", stage):
            (cache,) = re.findall(r"\bid=([^,]+)", mount)
            if cache not in ("formulacode-uv-wheels", "formulacode-read"):
                (argument,) = re.findall(r"-\$\{(CACHE|REPOSITORY_ID)\}$", cache)
                assert f"\nARG {argument}\n" in stage, "an argument that a stage does not declare is empty"


def test_no_image_is_made_of_a_stage_in_which_code_ran_with_a_network() -> None:
    """`cargo vendor` runs what the repository's own configuration of cargo names."""
    stages = re.split(r"^FROM ", dockerfile("task").read_text(), flags=re.MULTILINE)
    (fetching,) = (stage for stage in stages if "bin/fetch-crates" in stage)
    name = fetching.partition("\n")[0].rpartition(" AS ")[2]
    assert not [stage for stage in stages if stage.split()[0] == name]


def test_scripts_parse_on_the_oldest_interpreter() -> None:
    for path in set(SCRIPTS) - set(OF_SHELL):
        ast.parse(path.read_text(), feature_version=(3, 7))


def test_recipes_have_one_version_and_a_missing_one_is_named() -> None:
    assert len(recipe_hash()) == 64
    with pytest.raises(ConfigurationError, match="nothing is missing"):
        script("nothing")
