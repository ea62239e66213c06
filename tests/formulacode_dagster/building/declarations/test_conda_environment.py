from formulacode_dagster.building.declarations.asv_config import AsvConfig
from formulacode_dagster.building.declarations.conda_environment import named_environment, read_conda_environment

FILE = """
name: fast
channels: [conda-forge]
dependencies:
  - python=3.9
  - numpy>=1.20,<2
  - scipy=1.7=py39_0
  - conda-forge::geos
  - matplotlib-base 3.5.*
  - pip
  - pip:
      - tables>=3.7
      - -r more.txt
"""


def test_conda_names_and_versions_are_told_in_the_terms_of_the_index(tree_of):
    read = read_conda_environment(tree_of({"environment.yml": FILE}), "environment.yml")
    assert [item.text for item in read.requirements] == [
        "numpy>=1.20,<2",
        "scipy==1.7.*",
        "matplotlib==3.5.*",
        "tables>=3.7",
    ]
    assert read.system_packages == ("libgeos-dev",)
    assert read.python == "3.9"
    assert {drop.requirement for drop in read.dropped} == {"python =3.9", "conda-forge::geos", "pip"}


def test_what_is_no_environment_is_none(tree_of):
    files = {"a.yml": "- numpy\n", "b.yml": "x: [", "c.yml": "dependencies: 3\n", "d.yml": "a: &a [*a]\n"}
    assert [read_conda_environment(tree_of(files), path) for path in (*files, "e.yml")] == [None] * 5


def test_an_environment_nested_too_deep_for_libyaml_is_none(tree_of):
    for depth in (101, 80_000):
        tree = tree_of({"environment.yml": f"{FILE}  - {'[' * depth}{']' * depth}"})
        assert read_conda_environment(tree, "environment.yml") is None


def test_the_file_is_looked_for_beside_the_configuration(tree_of):
    config = AsvConfig(path="b/asv.conf.json", benchmark_dir="b/x", conda_environment_file="../ci/environment.yml")
    path, read = named_environment(tree_of({"ci/environment.yml": FILE}), config)
    assert (path, read.python) == ("ci/environment.yml", "3.9")
    ignored = config.model_copy(update={"conda_environment_file": "IGNORE"})
    assert named_environment(tree_of({"b/IGNORE": FILE}), ignored) is None
