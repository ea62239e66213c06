from formulacode_dagster.building.declarations.providers import DependencyKind
from formulacode_dagster.building.declarations.setup_build import read_setup_build

SETUP = """
import os, subprocess
from setuptools import setup, Extension
import numpy as np
import versioneer
try:
    from Cython.Build import cythonize
except ImportError:
    cythonize = None

libs = ["gsl"]
libs.append("gslcblas")
if os.name != "nt":
    libs += ["m"]
cflags = subprocess.check_output(["gsl-config", "--cflags"])
more = subprocess.check_output(["pkg-config", "--libs", "fftw3"])
text = os.popen("pkg-config --cflags zlib").read()
setup(
    name="fast",
    ext_modules=[Extension("fast._x", ["fast/x.c", "fast/y.f90"], libraries=libs + ["hdf5"])],
)
"""


def told(build):
    return {(dependency.kind, dependency.name) for dependency in build.dependencies}


def test_libraries_programs_and_languages_are_told(tree_of):
    build = read_setup_build(tree_of({"setup.py": SETUP, "versioneer.py": ""}), ".")
    assert told(build) >= {
        (DependencyKind.LIBRARIES, "gsl"),
        (DependencyKind.LIBRARIES, "gslcblas"),
        (DependencyKind.LIBRARIES, "hdf5"),
        (DependencyKind.PROGRAMS, "gsl-config"),
        (DependencyKind.PKG_CONFIG, "fftw3"),
        (DependencyKind.PKG_CONFIG, "zlib"),
        (DependencyKind.PROGRAMS, "fortran"),
    }
    assert build.has_extensions
    assert not build.calls_cmake


def test_imports_that_may_fail_are_told_apart_and_local_modules_are_none(tree_of):
    build = read_setup_build(tree_of({"setup.py": SETUP, "versioneer.py": ""}), ".")
    assert build.imports == (("setuptools", "setup.py:3"), ("numpy", "setup.py:4"))
    assert build.optional_imports == (("Cython.Build", "setup.py:7"),)


def test_numpy_distutils_runs_the_scripts_below(tree_of):
    files = {
        "setup.py": "from numpy.distutils.core import setup\nsetup()\n",
        "fast/linalg/setup.py": "info = get_info('lapack_opt')\nconfig.add_extension('x', ['a.f'])\n",
        "fast/tests/setup.py": "config.add_extension('x', libraries=['geos_c'])\n",
    }
    build = read_setup_build(tree_of(files), ".")
    assert told(build) == {(DependencyKind.LIBRARIES, "lapack"), (DependencyKind.PROGRAMS, "fortran")}
    assert build.has_extensions


def test_a_pure_package_and_a_broken_script_have_no_extensions(tree_of):
    assert not read_setup_build(
        tree_of({"setup.py": "from setuptools import setup\nsetup(name='x', ext_modules=[])\n"}), "."
    ).has_extensions
    assert read_setup_build(tree_of({"setup.py": "print 'x'\n"}), ".") == read_setup_build(tree_of({"x": ""}), ".")
