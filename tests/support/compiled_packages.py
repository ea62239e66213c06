"""Small packages with a compiled part, each with a suite: in C with Python, in Cython, in Rust."""

from __future__ import annotations

from tests.support.extension import SLOW_C

SLOW_PYTHON = """from tinyc._fast import total


def squares(n):
    found = []
    for i in range(n):
        if i * i not in found:
            found.append(i * i)
    return found


def other(n):
    return [i for i in range(n)]


def held(n):
    blocks = [b"x" * 1_000_000 for _ in range(n)]
    return blocks[-3:]
"""
SLOW_CYTHON = """# cython: language_level=3
def cubes(int n):
    cdef int i
    found = []
    for i in range(n):
        found = found + [i * i * i]
    return found


def untouched(int n):
    return n
"""
FAST_CYTHON = SLOW_CYTHON.replace("found = found + [i * i * i]", "found.append(i * i * i)")
FAST_PYTHON = SLOW_PYTHON.replace(
    """    found = []
    for i in range(n):
        if i * i not in found:
            found.append(i * i)
    return found
""",
    "    return [i * i for i in range(n)]\n",
)
PYPROJECT = """
[build-system]
requires = {requires}
build-backend = "setuptools.build_meta"

[project]
name = "tinyc"
version = "1.0"
"""
C_FILES = {
    "pyproject.toml": PYPROJECT.format(requires=["setuptools"]),
    "setup.py": """
from setuptools import Extension, setup

setup(package_dir={"": "src"}, packages=["tinyc"], ext_modules=[Extension("tinyc._fast", ["src/tinyc/_fast.c"])])
""",
    "src/tinyc/__init__.py": SLOW_PYTHON,
    "src/tinyc/_fast.c": SLOW_C,
    "benchmarks/__init__.py": "",
    "benchmarks/bench.py": """
import tinyc


def time_total():
    tinyc.total(100000)


def time_squares():
    tinyc.squares(300)


def time_other():
    tinyc.other(1000)


def peakmem_held():
    tinyc.held(60)


def track_held():
    return len(tinyc.held(3))
""",
}
# by itself: translating and compiling Cython takes several times as long as all else of a build
CYTHON_FILES = {
    "pyproject.toml": PYPROJECT.format(requires=["setuptools", "cython"]),
    "setup.py": """
from Cython.Build import cythonize
from setuptools import Extension, setup

# most of a build would be gcc at work on what Cython writes
extensions = [Extension("tinyc._cubes", ["src/tinyc/_cubes.pyx"], extra_compile_args=["-O0"])]
setup(package_dir={"": "src"}, packages=["tinyc"], ext_modules=cythonize(extensions))
""",
    "src/tinyc/__init__.py": "",
    "src/tinyc/_cubes.pyx": SLOW_CYTHON,
    "benchmarks/__init__.py": "",
    "benchmarks/bench.py": """
from tinyc import _cubes


def time_cubes():
    _cubes.cubes(1200)


def time_untouched_cython():
    _cubes.untouched(1)
""",
}
SLOW_RUST = """#[no_mangle]
pub extern "C" fn steps(n: u64) -> u64 {
    let mut x = n | 1;
    for _ in 0..n * 20 {
        x = if x & 1 == 1 { (3 * x + 1) % 1000003 } else { x >> 1 };
    }
    x
}

#[no_mangle]
pub extern "C" fn never(n: u64) -> u64 {
    n + 1
}
"""
FAST_RUST = SLOW_RUST.replace("n * 20", "n")
# loaded by ctypes: no crate can be had here, and none is needed
RUST_FILES = {
    "pyproject.toml": PYPROJECT.format(requires=["setuptools"]),
    "setup.py": """
import shutil
import subprocess

from setuptools import setup
from setuptools.command.build_py import build_py


class WithCargo(build_py):
    def run(self):
        subprocess.run(["cargo", "build", "--release", "--offline"], check=True)
        shutil.copy("target/release/libtinyc.so", "src/tinyc/_steps.so")
        super().run()


setup(
    package_dir={"": "src"}, packages=["tinyc"], package_data={"tinyc": ["*.so"]}, cmdclass={"build_py": WithCargo}
)
""",
    "Cargo.toml": """
[package]
name = "tinyc"
version = "1.0.0"
edition = "2021"

[lib]
crate-type = ["cdylib"]
path = "src/lib.rs"
""",
    "src/lib.rs": SLOW_RUST,
    "src/tinyc/__init__.py": """import ctypes
from pathlib import Path

steps = ctypes.CDLL(str(Path(__file__).with_name("_steps.so"))).steps
steps.argtypes = [ctypes.c_uint64]
steps.restype = ctypes.c_uint64
""",
    "benchmarks/__init__.py": "",
    "benchmarks/bench.py": """
import tinyc


def time_steps():
    tinyc.steps(10_000)


def time_other():
    tinyc.steps.argtypes
""",
}
