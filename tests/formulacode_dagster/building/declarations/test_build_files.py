from formulacode_dagster.building.declarations.build_files import read_cmake, read_meson
from formulacode_dagster.building.declarations.providers import DependencyKind

MESON = """
project(
  'fast', 'c', 'cpp', 'cython',  # 'rust' is for later
  version: run_command('version.py').stdout(),
  default_options: ['fortran_std=legacy'],
)
add_languages('fortran', native: false)
m_dep = cc.find_library('m', required : false)
blas_name = get_option('blas')
blas = dependency(blas_name, version: '>=0.3')
omp = dependency('openmp', required: false)
np_dep = declare_dependency(include_directories: inc)
py_dep = py.dependency()
swig = find_program('swig')
subdir('fast')
subdir(other_place)
"""


def told(dependencies):
    return [(dependency.kind, dependency.name) for dependency in dependencies]


def test_meson_is_followed_into_its_folders_and_options(tree_of):
    files = {
        "meson.build": MESON,
        "meson_options.txt": "option('blas', type: 'string', value: 'openblas', description: '(the library)')\n",
        "fast/meson.build": "subdir('../subprojects/zlib')\nfftw = dependency(['fftw3', 'fftw'])\nsubdir('.')\n",
        "subprojects/zlib/meson.build": "dependency('zlib')\n",
        "tests/meson.build": "dependency('gtest')\n",
    }
    found = read_meson(tree_of(files), ".")
    assert told(found) == [
        (DependencyKind.PROGRAMS, "fortran"),
        (DependencyKind.PKG_CONFIG, "openblas"),
        (DependencyKind.PROGRAMS, "swig"),
        (DependencyKind.PKG_CONFIG, "fftw3"),
    ]
    assert [dependency.source for dependency in found] == [
        "meson.build:7",
        "meson.build:10",
        "meson.build:14",
        "fast/meson.build:2",
    ]


def test_cmake_tells_what_it_requires(tree_of):
    files = {
        "python/CMakeLists.txt": """
project(fast LANGUAGES CXX Fortran)
# find_package(Qt5 REQUIRED)
find_package(Boost 1.60 COMPONENTS system REQUIRED)
FIND_PACKAGE(HDF5)
pkg_check_modules(GSL REQUIRED IMPORTED_TARGET gsl>=2.0 ${OTHER})
add_subdirectory(src)
add_subdirectory(third_party/fmt)
""",
        "python/src/CMakeLists.txt": "find_package(ZLIB REQUIRED)\n",
        "python/third_party/fmt/CMakeLists.txt": "find_package(GTest REQUIRED)\n",
    }
    assert told(read_cmake(tree_of(files), "python")) == [
        (DependencyKind.PROGRAMS, "fortran"),
        (DependencyKind.CMAKE_PACKAGES, "boost"),
        (DependencyKind.PKG_CONFIG, "gsl"),
        (DependencyKind.CMAKE_PACKAGES, "zlib"),
    ]


def test_a_repository_without_such_files_asks_for_nothing(tree_of):
    assert read_meson(tree_of({"setup.py": ""}), ".") == read_cmake(tree_of({"setup.py": ""}), ".") == ()
