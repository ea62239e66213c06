import pytest

from formulacode_dagster.building.declarations.asv_config import AsvConfig
from formulacode_dagster.building.declarations.needs_of_tests import choose_for_tests
from formulacode_dagster.building.declarations.optional import optional_groups
from formulacode_dagster.building.declarations.requirements import read_metadata

CONFIG = AsvConfig(path="asv.conf.json", benchmark_dir="benchmarks")
PLAIN = '[project]\nname = "fast"\n'
TESTS = {"tests/test_fast.py": "import numpy as np\nfrom hypothesis import given\nimport yaml, fast\n"}
CI = """
jobs:
  test:
    steps:
      - run: |
          pip install .[test] numpy \\
             hypothesis==6.100 ruff
          pytest
  docs:
    steps:
      - run: pip install pyyaml
"""
NOX = """
import nox

@nox.session
def tests(session):
    session.install("hypothesis>=6", "coverage", "-e", ".")
    session.install("-r", "requirements/ci.txt")
"""
TOX = """
[testenv]
deps =
    py311: hypothesis
    pytest-mock  # replaces things
    -rrequirements/ci.txt
    coverage
[testenv:docs]
deps = sphinx, numpy
"""


@pytest.fixture
def chosen(tree_of):
    def choose(files, project=PLAIN, tests=TESTS):
        tree = tree_of({"pyproject.toml": project, **tests, **files})
        groups = optional_groups(tree, CONFIG, read_metadata(tree, "."), own_name="fast")
        return [item.text for item in choose_for_tests(tree, groups, own_name="fast")]

    return choose


def test_pytest_is_all_that_is_taken_without_a_declaration(chosen):
    assert chosen({}) == ["pytest"]


def test_a_repository_without_tests_needs_nothing(chosen):
    assert chosen({"tox.ini": TOX}, tests={}) == []


@pytest.mark.parametrize("name", ["test", "tests", "testing", "test-extras", "unit_tests"])
def test_an_extra_for_tests_is_taken_whole_but_for_how_they_are_run(chosen, name):
    needs = ["pytest>=7", "pytest-cov", "pytest-xdist>=2", "tabulate", "fast[x]"]
    extra = f"[project.optional-dependencies]\n{name} = {needs}\n"
    assert chosen({}, PLAIN + extra) == ["pytest>=7", "tabulate"]


def test_a_group_counts_as_an_extra_does(chosen):
    assert chosen({}, f'{PLAIN}[dependency-groups]\ntests = ["pytest==8.1", "tabulate"]\n') == [
        "pytest==8.1",
        "tabulate",
    ]


def test_of_other_groups_what_tests_import_is_taken(chosen):
    extra = '[project.optional-dependencies]\ndev = ["hypothesis<7", "ruff", "pytest-mock", "latest"]\n'
    assert chosen({}, PLAIN + extra) == ["pytest", "hypothesis<7", "pytest-mock"]


def test_tox_nox_and_ci_tell_what_no_extra_does(chosen):
    ci_file = {"requirements/ci.txt": "pyyaml\nflake8\n"}
    assert chosen({"tox.ini": TOX, **ci_file}) == ["pytest", "hypothesis", "pytest-mock", "pyyaml"]
    assert chosen({"noxfile.py": NOX, **ci_file}) == ["pytest", "hypothesis>=6", "pyyaml"]
    assert chosen({".github/workflows/test.yml": CI}) == ["pytest", "numpy", "hypothesis==6.100"]


def test_an_option_without_a_value_does_not_take_the_next_requirement_with_it(chosen):
    script = "jobs: {test: {steps: [{run: pip install -U hypothesis --upgrade pyyaml -c numpy}]}}"
    assert chosen({".github/workflows/test.yml": script}) == ["pytest", "hypothesis", "pyyaml"]
    nox = "def tests(session):\n    session.install('-U', 'hypothesis', '-c', BOUNDS, 'pyyaml')\n"
    assert chosen({"noxfile.py": nox}) == ["pytest", "hypothesis", "pyyaml"]


@pytest.mark.parametrize(
    "files",
    [{"tox.ini": "[testenv\ndeps"}, {"noxfile.py": "def ("}, {".github/workflows/test.yml": "run: [pip install"}],
)
def test_a_file_that_cannot_be_read_declares_nothing(chosen, files):
    assert chosen(files) == ["pytest"]


def test_what_conda_calls_iris_is_another_project_on_the_index(chosen):
    files = {"ci/requirements/environment.yml": "dependencies: [iris>=3.9, ruff]\n"}
    tests = {"tests/test_convert.py": "def test_iris():\n    import iris\n"}
    assert chosen(files, tests=tests) == ["pytest", "scitools-iris>=3.9"]
