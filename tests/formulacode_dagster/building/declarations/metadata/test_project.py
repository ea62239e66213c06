import pytest

from formulacode_dagster.building.declarations.requirements import read_metadata


def texts(requirements):
    return [item.text for item in requirements or ()]


def test_pep_621_is_read_with_its_extras_and_build_requirements(tree_of):
    text = """
[build-system]
requires = ["meson-python", "Cython>=3"]
build-backend = "mesonpy"
[project]
name = "fast"
requires-python = ">=3.10"
dependencies = ["numpy>=1.2", "colorama; platform_system == 'Windows'"]
classifiers = ["Programming Language :: Python :: 3", "Programming Language :: Python :: 3.9",
               "Programming Language :: Python :: 3.10"]
[project.optional-dependencies]
test = ["pytest"]
[dependency-groups]
bench = ["rich", {include-group = "more"}]
more = ["tqdm"]
"""
    said = read_metadata(tree_of({"pyproject.toml": text}), ".")
    assert said.name.value == "fast"
    assert said.requires_python.source == "pyproject.toml:project.requires-python"
    assert texts(said.dependencies) == ["numpy>=1.2", "colorama; platform_system == 'Windows'"]
    assert said.classifiers.value == ("3.9", "3.10")
    assert texts(said.extras["test"]) == ["pytest"]
    assert texts(said.groups["bench"]) == ["rich", "tqdm"]
    assert texts(said.build_requires) == ["meson-python", "Cython>=3"]
    assert said.build_backend == "mesonpy"


def test_dynamic_dependencies_come_from_the_file_that_is_named(tree_of):
    setuptools = """
[project]
name = "fast"
dynamic = ["dependencies", "optional-dependencies"]
[tool.setuptools.dynamic]
dependencies = {file = ["req/run.txt"]}
optional-dependencies.test = {file = ["req/test.txt"]}
"""
    files = {
        "pyproject.toml": setuptools,
        "req/run.txt": "numpy\n",
        "req/test.txt": "pytest\n",
        "requirements.txt": "bad",
    }
    said = read_metadata(tree_of(files), ".")
    assert texts(said.dependencies) == ["numpy"]
    assert texts(said.extras["test"]) == ["pytest"]
    hatch = """
[project]
name = "fast"
dynamic = ["dependencies"]
[tool.hatch.metadata.hooks.requirements_txt]
files = ["req/run.txt"]
"""
    assert texts(read_metadata(tree_of({**files, "pyproject.toml": hatch}), ".").dependencies) == ["numpy"]


def test_dynamic_dependencies_without_a_file_come_from_setup_py(tree_of):
    files = {
        "pyproject.toml": '[project]\nname = "fast"\ndynamic = ["dependencies"]\n',
        "setup.py": "from setuptools import setup\nsetup(install_requires=['numpy'], name='other')\n",
    }
    said = read_metadata(tree_of(files), ".")
    assert said.name.value == "fast"
    assert texts(said.dependencies) == ["numpy"]


def test_poetry_and_flit_are_read(tree_of):
    poetry = """
[tool.poetry]
name = "fast"
packages = [{include = "fast", from = "src"}]
[tool.poetry.dependencies]
python = "^3.8"
attrs = "^22.1"
rich = {version = "*", optional = true}
[tool.poetry.extras]
pretty = ["rich"]
"""
    said = read_metadata(tree_of({"pyproject.toml": poetry}), ".")
    assert said.requires_python.value == ">=3.8,<4"
    assert texts(said.dependencies) == ["attrs>=22.1,<23"]
    assert texts(said.extras["pretty"]) == ["rich"]
    assert said.source_folders == ("src",)
    flit = '[tool.flit.metadata]\nmodule = "fast"\nrequires = ["attrs"]\nrequires-python = ">=3.6"\n'
    said = read_metadata(tree_of({"pyproject.toml": flit}), ".")
    assert texts(said.dependencies) == ["attrs"]
    assert said.import_names == ("fast",)


def test_setup_cfg_is_read_as_setuptools_reads_it(tree_of):
    text = """
[metadata]
name = fast
classifiers =
    Programming Language :: Python :: 3.8
[options]
python_requires = >=3.7
package_dir =
    = src
install_requires =
    numpy>=1.2
    colorama; platform_system == "Windows"
setup_requires = cython; pybind11
[options.extras_require]
test = pytest
"""
    said = read_metadata(tree_of({"setup.cfg": text}), ".")
    assert texts(said.dependencies) == ["numpy>=1.2", 'colorama; platform_system == "Windows"']
    assert texts(said.setup_requires) == ["cython", "pybind11"]
    assert texts(said.extras["test"]) == ["pytest"]
    assert said.source_folders == ("src",)
    assert said.classifiers.value == ("3.8",)


def test_unparsable_files_are_recorded_and_do_not_stop_others(tree_of):
    files = {"pyproject.toml": "[project", "setup.cfg": "no section", "setup.py": "print 'old'"}
    said = read_metadata(tree_of(files), ".")
    assert [drop.source for drop in said.unread] == ["pyproject.toml", "setup.cfg", "setup.py"]
    assert said.dependencies is None


@pytest.mark.slow
def test_extras_of_setup_cfg_may_refer_to_each_other(tree_of):
    text = "[options.extras_require]\nqt =\n    PyQt5>=5.12\nall =\n    %(qt)s\n    scipy\nodd = %(none)s\n"
    extras = read_metadata(tree_of({"setup.cfg": text, "setup.py": ""}), ".").extras
    assert texts(extras["all"]) == ["PyQt5>=5.12", "scipy"]
    assert texts(extras["odd"]) == ["%(none)s"]
    circle = f"[options.extras_require]\na = {'%(a)s ' * 3000}\n"
    assert read_metadata(tree_of({"setup.cfg": circle}), ".").extras


def test_groups_that_include_each_other_twice_count_once(tree_of):
    includes = '[{include-group = "g%d"}, "own%d", {include-group = "g%d"}]'
    lines = [f"g{level} = {includes % (level + 1, level, level + 1)}" for level in range(200)]
    text = "\n".join(["[dependency-groups]", *lines, 'g200 = [{include-group = "g0"}, "last"]'])
    said = read_metadata(tree_of({"pyproject.toml": text}), ".")
    assert texts(said.groups["g0"]) == [*(f"own{level}" for level in range(200)), "last"]
