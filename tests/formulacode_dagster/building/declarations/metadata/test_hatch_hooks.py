import pytest

from formulacode_dagster.building.declarations.commands import CommandReading
from formulacode_dagster.building.declarations.requirements import gather, read_metadata

PROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"
[project]
name = "fast"
[project.optional-dependencies]
compiled = ["msgspec"]
[tool.hatch.build.targets.wheel.hooks.mypyc]
enable-by-default = false
dependencies = ["hatch-mypyc>=0.13"]
require-runtime-features = ["compiled"]
[tool.hatch.build.hooks.custom]
dependencies = ["cffi"]
[tool.hatch.build.targets.sdist.hooks.docs]
dependencies = ["sphinx"]
"""


@pytest.fixture
def build_requirements(tree_of):
    """Requirements of a build with these variables set."""

    def gathered(**variables):
        said = read_metadata(tree_of({"pyproject.toml": PROJECT}), ".")
        found = gather(said, CommandReading(), (), own_name="fast", variables=variables)
        return [item.text for item in found.build if item.text not in ("hatchling", "setuptools")]

    return gathered


def test_a_hook_that_is_on_by_itself_brings_its_needs(build_requirements):
    assert build_requirements() == ["cffi"]


@pytest.mark.parametrize("variable", ["HATCH_BUILD_HOOKS_ENABLE", "HATCH_BUILD_HOOK_ENABLE_MYPYC"])
def test_variables_of_the_build_turn_a_hook_on_with_the_extras_it_needs(build_requirements, variable):
    assert build_requirements(**{variable: "1"}) == ["cffi", "hatch-mypyc>=0.13", "msgspec"]
    assert build_requirements(**{variable: "0"}) == ["cffi"]


def test_one_variable_turns_all_of_them_off(build_requirements):
    assert build_requirements(HATCH_BUILD_NO_HOOKS="true", HATCH_BUILD_HOOKS_ENABLE="1") == []
