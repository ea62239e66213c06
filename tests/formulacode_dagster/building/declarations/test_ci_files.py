import time

import pytest

from formulacode_dagster.building.declarations.ci_files import installed, read_ci_files

WORKFLOW = """
name: tests
on: [push]
jobs:
  build:
    runs-on: ubuntu-latest
    steps:
      - name: system libraries
        run: |
          sudo apt-get update && sudo apt-get install -y --no-install-recommends libgsl-dev \\
              gfortran  # compilers
          sudo apt install "libhdf5-dev=1.10" $EXTRA ./local.deb ${{ matrix.apt }}
      - run: pip install .
      - uses: awalsh128/cache-apt-pkgs-action@v1
        with:
          packages: swig libfftw3-dev
  docs:
    steps:
      - run: sudo apt-get install texlive
  style:
    name: Lint
    steps:
      - run: sudo apt-get install clang-format
"""
TRAVIS = """
language: python
addons:
  apt:
    packages: &common
      - libatlas-base-dev
      - gfortran
matrix:
  include:
    - addons: {apt: {packages: *common}}
before_install:
  - if [ "$X" ]; then sudo apt-get -qq install libgeos-dev; fi
  - travis_retry sudo eatmydata apt-get install zip
"""


def names(found):
    return [package.name for package in found]


def test_apt_lines_of_jobs_that_build_are_read_with_their_places(tree_of):
    found = read_ci_files(tree_of({".github/workflows/tests.yml": WORKFLOW}))
    assert names(found) == ["libgsl-dev", "gfortran", "libhdf5-dev", "swig", "libfftw3-dev"]
    assert [package.source.rpartition(":")[2] for package in found] == ["10", "10", "12", "16", "16"]


def test_travis_lists_packages_and_runs_commands(tree_of):
    found = read_ci_files(tree_of({".travis.yml": TRAVIS}))
    assert names(found) == ["libatlas-base-dev", "gfortran", "libgeos-dev", "zip"]
    assert found[0].source == ".travis.yml:6"


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (
            ".circleci/config.yml",
            "jobs:\n  test:\n    steps:\n      - run:\n          command: apt-get install -y libpng-dev\n",
        ),
        ("azure-pipelines.yml", "jobs:\n- job: Linux\n  steps:\n  - script: sudo apt install -y libpng-dev\n"),
        (".azure/test-linux.yml", "steps:\n  - bash: |\n      apt-get -y install libpng-dev\n"),
    ],
)
def test_other_ci_services_are_read(tree_of, path, text):
    assert names(read_ci_files(tree_of({path: text}))) == ["libpng-dev"]


def test_what_is_no_ci_file_or_cannot_be_read_gives_nothing(tree_of):
    files = {
        ".github/workflows/docs.yml": "jobs: {x: {steps: [{run: apt-get install doxygen}]}}",
        ".github/workflows/broken.yml": "jobs: [apt install x",
        ".github/workflows/empty.yml": "# apt",
        "ci/other.yml": "run: apt-get install libpng-dev",
    }
    assert read_ci_files(tree_of(files)) == ()


def test_a_file_nested_too_deep_for_libyaml_gives_nothing(tree_of):
    steps = {depth: f"steps: {'[' * depth}'apt install gcc'{']' * depth}" for depth in (98, 101, 100_000)}
    assert [item.name for item in read_ci_files(tree_of({".travis.yml": steps[98]}))] == ["gcc"]
    assert read_ci_files(tree_of({".travis.yml": steps[101]})) == ()
    assert read_ci_files(tree_of({".travis.yml": steps[100_000]})) == ()


def test_aliases_that_multiply_are_looked_at_once(tree_of):
    levels = "".join(f"l{n}: &l{n} [*l{n - 1}, *l{n - 1}, *l{n - 1}]\n" for n in range(1, 40))
    text = "l0: &l0 ['apt-get install libpng-dev']\n" + levels
    assert names(read_ci_files(tree_of({".travis.yml": text}))) == ["libpng-dev"]


def test_an_expression_is_left_out_and_one_without_end_is_read_once():
    for expression in ("x && format('lib{0}', x)", "fromJSON('{\"a\": 1}').a || x", "hashFiles('{a,b}') && x"):
        assert [name for name, _ in installed(f"apt install gcc ${{{{ {expression} }}}} g++")] == ["gcc", "g++"]

    def seconds(count: int) -> float:
        begun = time.process_time()
        assert list(installed("apt install gcc " + "${{" * count)) == [("gcc", 0)]
        return time.process_time() - begun

    # eight times the text takes 64 times as long if each expression is looked for to the end
    assert min(seconds(8_000) for _ in range(3)) < 24 * min(seconds(1_000) for _ in range(3))


def test_commands_that_do_not_install_are_passed_over():
    assert list(installed("apt-get update\napt-cache policy install\necho apt install\npip install apt")) == []
    assert list(installed("sudo apt install -y 'a1 b2' it's c3")) == [("c3", 0)]
