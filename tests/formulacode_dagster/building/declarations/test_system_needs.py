import pytest

from formulacode_dagster.building.declarations.requirements import read_metadata
from formulacode_dagster.building.declarations.system_needs import read_system_needs


@pytest.fixture
def needs(tree_of):
    """Build requirements of a small repository's package."""

    def read(folder=".", **files):
        tree = tree_of({name.replace("__", "/"): text for name, text in files.pop("files", {}).items()})
        return read_system_needs(tree, folder, read_metadata(tree, folder))

    return read


EXTENSION = "from setuptools import setup, Extension\nsetup(ext_modules=[Extension('x', ['x.c'], libraries=[{}])])\n"
CI = "jobs: {test: {steps: [{run: 'sudo apt-get install -y libgsl0-dev libgmp-dev graphviz no-such-dev'}]}}\n"


def test_a_linked_library_brings_its_debian_package_with_file_and_line(needs):
    found = needs(files={"setup.py": EXTENSION.format("'gsl', 'm', 'our_own'")})
    assert found.apt_packages == ("libgsl-dev",)
    assert found.notes == ("setup.py:2 asks for gsl: libgsl-dev",)


def test_where_a_library_is_kept_is_told_to_the_compiler(needs):
    found = needs(files={"setup.py": EXTENSION.format("'hdf5', 'z'")})
    assert found.apt_packages == ("libhdf5-dev", "zlib1g-dev")
    assert found.environment["CPATH"] == "/usr/include/hdf5/serial"


def test_ci_packages_count_where_a_build_file_names_the_library(needs):
    setup = EXTENSION.format("") + "flags = ['-lgsl']\n"
    found = needs(files={"setup.py": setup, ".github/workflows/ci.yml": CI})
    assert found.apt_packages == ("libgsl-dev",)
    assert found.notes == (
        ".github/workflows/ci.yml:1 installs libgsl0-dev, and a build file names it: libgsl-dev",
        ".github/workflows/ci.yml:1 installs libgmp-dev: no build file names it, left out",
    )


def test_ci_packages_of_a_pure_package_are_left_alone(needs):
    found = needs(
        files={"setup.py": "from setuptools import setup\nsetup(name='gsl')\n", ".github/workflows/ci.yml": CI}
    )
    assert (found.apt_packages, found.notes) == ((), ())


def test_meson_needs_pkg_config_for_its_dependencies(needs):
    project = "[build-system]\nrequires = ['meson-python']\nbuild-backend = 'mesonpy'\n"
    found = needs(files={"pyproject.toml": project, "meson.build": "project('x', 'fortran')\ndependency('openblas')\n"})
    assert found.apt_packages == ("gfortran", "libopenblas-dev", "pkg-config")


def test_a_meson_build_of_another_back_end_is_not_read(needs):
    files = {"setup.py": "from setuptools import setup\nsetup()\n", "meson.build": "dependency('openblas')\n"}
    assert needs(files=files).apt_packages == ()


@pytest.mark.parametrize("tool", ["setuptools-rust", "maturin>=1"])
def test_rust_brings_a_compiler(needs, tool):
    found = needs(files={"pyproject.toml": f"[build-system]\nrequires = ['{tool}']\n", "setup.py": ""})
    assert found.apt_packages == ("cargo-web", "rustc-web", "rust-web-llvm")


def test_a_script_that_calls_cmake_gets_it_from_the_index(needs):
    setup = "import subprocess\nsubprocess.run(['cmake', '..'])\n"
    found = needs(
        files={"setup.py": setup, "CMakeLists.txt": "find_package(GSL REQUIRED)\nfind_package(pybind11 REQUIRED)\n"}
    )
    assert found.apt_packages == ("libgsl-dev",)
    assert [item.text for item in found.build_requirements] == ["pybind11", "cmake", "ninja"]


def test_imports_of_setup_py_are_build_requirements_before_pep_518(needs):
    setup = "import numpy\nimport pytest\ntry:\n    import Cython\nexcept ImportError:\n    pass\n"
    files = {"setup.py": setup, "fast__core.pyx": ""}
    assert [item.text for item in needs(files=files).build_requirements] == ["numpy", "cython"]
    assert [item.text for item in needs(files={**files, "fast__core.c": ""}).build_requirements] == ["numpy"]
    declared = {**files, "pyproject.toml": "[build-system]\nrequires = ['setuptools']\n"}
    assert needs(files=declared).build_requirements == ()
