import pytest

from formulacode_dagster.building.declarations.asv_config import AsvConfig
from formulacode_dagster.building.declarations.optional import choose_optional, optional_groups, requirements_for
from formulacode_dagster.building.declarations.requirements import read_metadata

PROJECT = """
[project]
name = "fast"
dependencies = ["numpy"]
[project.optional-dependencies]
ml = ["scikit-learn>=1.0", "torch"]
sparse = ["dask[array]>=2; python_version >= '3.8'"]
everything = ["fast[ml,sparse]", "numba"]
test = ["pytest", "hypothesis"]
"""
CONFIG = AsvConfig(path="bench/asv.conf.json", benchmark_dir="bench/benchmarks")
OWN = {"fast"}


@pytest.fixture
def chosen(tree_of):
    """Texts and notes chosen for imports, in a repository with the files given besides."""

    def choose(*imports, files=(), have=("numpy",), project=PROJECT):
        tree = tree_of({"pyproject.toml": project, **dict(files)})
        among = optional_groups(tree, CONFIG, read_metadata(tree, "."), own_name="fast")
        found = choose_optional(
            {name: f"bench/benchmarks/m.py:{n}" for n, name in enumerate(imports, 1)}, have, among, own_names=OWN
        )
        return [item.text for item in found.requirements], found.notes

    return choose


def test_only_the_line_that_is_imported_is_taken_from_an_extra(chosen):
    texts, notes = chosen("fast.core", "numpy", "sklearn.cluster")
    assert texts == ["scikit-learn>=1.0"]
    assert notes == (
        "scikit-learn>=1.0 (pyproject.toml:project.optional-dependencies.ml) is taken: "
        "bench/benchmarks/m.py:3 imports sklearn.cluster",
    )


def test_a_line_keeps_its_extras_and_marker(chosen):
    assert chosen("dask.array")[0] == ["dask[array]>=2; python_version >= '3.8'"]


def test_what_no_file_declares_is_never_guessed(chosen):
    assert chosen("umath", "plex", "version") == ([], ())


def test_what_the_package_or_the_matrix_asks_for_is_not_taken_again(chosen):
    assert chosen("sklearn", have=("numpy", "scikit-learn")) == ([], ())


def test_an_extra_for_benchmarks_is_taken_whole_if_used(chosen):
    project = PROJECT + 'bench = ["rich", "pyperf", "asv"]\n'
    assert chosen("rich.console", project=project)[0] == ["rich", "pyperf", "asv"]
    assert chosen("numpy", project=project)[0] == []


def test_requirements_beside_the_suite_are_meant_for_benchmarks(chosen):
    files = {"bench/requirements.txt": "tqdm\npsutil>=5\n", "docs/requirements.txt": "torch\ncupy\n"}
    assert chosen("psutil", files=files)[0] == ["tqdm", "psutil>=5"]
    assert chosen("cupy", files=files)[0] == []


def test_other_requirements_files_and_conda_environments_give_single_lines(chosen):
    files = {
        "requirements/dev.txt": "mypy\nnumexpr>2\n",
        "ci/environment.yml": "dependencies: [pytables=3.7, geos, ruff]\n",
    }
    assert chosen("numexpr", "tables", files=files)[0] == ["numexpr>2", "tables==3.7.*"]


def test_benchmarks_that_import_the_projects_tests_need_pytest(chosen):
    assert chosen("fast.tests.data")[0] == ["pytest"]
    assert chosen("fast.core")[0] == []


def test_pins_of_linters_docs_and_constraints_are_not_requirements(chosen):
    files = {"requirements_mypy.txt": "packaging==24.0\n", "ci/constraints-requirements.txt": "packaging==22\n"}
    assert chosen("packaging", files=files)[0] == []


def test_files_of_a_package_with_the_configuration_are_not_the_suites(tree_of):
    config = AsvConfig(path="python/asv.conf.json", benchmark_dir="python/benchmarks")
    tree = tree_of({"python/setup.py": "", "python/requirements.txt": "cloudpickle\npandas\n"})
    among = optional_groups(tree, config, read_metadata(tree, "python"), own_name="fast", package="python")
    assert [group.for_benchmarks for group in among] == [False]


def test_extras_of_setup_py_count_too(tree_of):
    text = "from setuptools import setup\nsetup(name='fast', tests_require=['mock'], extras_require={'x': ['cupy']})\n"
    tree = tree_of({"setup.py": text})
    among = optional_groups(tree, CONFIG, read_metadata(tree, "."), own_name="fast")
    assert [item.text for name in ("mock", "cupy") for item in requirements_for(name, among)] == ["mock", "cupy"]
