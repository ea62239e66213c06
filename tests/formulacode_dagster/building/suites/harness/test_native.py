"""Lines of compiled code, by coverage builds of C and Rust, and by Cython's comments in C."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tempfile

import pytest

from formulacode_dagster.building.suites.harness.compiled import native
from formulacode_dagster.building.suites.harness.compiled.gcov import markers_of
from formulacode_dagster.building.suites.harness.compiled.native import instrument

SOURCE = """\
#include <Python.h>
#define START 1 + \\
    2 /* of it */
static long
never(
    long n)
{
    return n + 1;
}
static int unrelated;
static PyObject *total(PyObject *self, PyObject *argument) {
    long n = PyLong_AsLong(argument);
    volatile long sum = START;
    // a comment
    for (long i = 0; i < n; i++)
        sum += i;
    if (n < 0) {
        sum = never(
            n);
    }
    return PyLong_FromLong(sum);
}
static PyMethodDef methods[] = {{"total", total, METH_O, ""}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_fast", NULL, -1, methods};
PyMODINIT_FUNC PyInit__fast(void) { return PyModule_Create(&module); }
"""
TRIAL = """
import json, os, sys
sys.path[:0] = {path!r}
import _fast
from formulacode_dagster.building.suites.harness.compiled.native import NativeWatch
watch = NativeWatch({data!r}, {{"src/_fast.c": range(1, 99), "src/_gone.c": [1]}}, {repository!r})
told = [watch.find()]
for argument in (3, 0, -1):
    watch.start()
    _fast.total(argument)
    told.append(watch.executed().get("src/_fast.c", []))
watch.start()
told.append(watch.executed())
print(json.dumps(told))
os.environ["GCOV_PREFIX"] = {folder!r}
"""


@pytest.fixture
def build(tmp_path, monkeypatch):
    """Build `_fast` below a hidden folder, in a tree that goes afterwards, as a package's; its stored record."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tree = tmp_path / ".home" / "tree"
    (tree / "src").mkdir(parents=True)
    (tree / "src" / "_fast.c").write_text(SOURCE)

    def run(units=("_fast.*",)):
        told = {}
        instrument({"units": units, "linkers": ""}, lambda **answer: told.update(answer))
        compiler, include = f"{told['variables']['PATH'].split(':')[0]}/gcc", sysconfig.get_path("include")
        exports = tmp_path / "exports"
        exports.write_text("{ global: PyInit_*; local: *; };")
        for arguments in (
            ["-O2", "-fPIC", f"-I{include}", "-c", "src/_fast.c", "-o", "build.o"],
            ["-shared", f"-Wl,--version-script={exports}", "build.o", "-o", str(tmp_path / "_fast.so")],
        ):
            subprocess.run([compiler, *arguments], cwd=tree, check=True)
        tree.rename(tmp_path / "repository")
        return told["data"]

    return run


def lines_of(tmp_path, data):
    code = TRIAL.format(
        path=[str(tmp_path)], data=data, repository=str(tmp_path / "repository"), folder=str(tmp_path / "end")
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_lines_of_c_that_a_call_executes_are_told_of_each_call_by_itself(build, tmp_path):
    seen, three, none, negative, nothing = lines_of(tmp_path, build())
    assert seen == ["src/_fast.c"]
    always = [2, 3, 11, 12, 13, 15, 17, 21]
    assert three == sorted([*always, 16])
    assert none == always
    # a declaration and the lines of one statement belong together; a lone brace and another's declaration do not
    assert negative == sorted([*always, 4, 5, 6, 8, 18, 19])
    assert nothing == {}


def test_of_what_is_not_compiled_with_coverage_nothing_is_told(build, tmp_path):
    seen, *told = lines_of(tmp_path, build(units=("_other.*",)))
    assert seen == []
    assert told == [[], [], [], {}]


CRATE = {
    "Cargo.toml": """\
[package]
name = "fast"
version = "1.0.0"
edition = "2021"
[lib]
crate-type = ["cdylib"]
[profile.release]
strip = true
""",
    "build.rs": 'fn main() { println!("cargo:rerun-if-changed=build.rs"); }\n',
    "src/lib.rs": """\
mod sums;
#[no_mangle]
pub extern "C" fn total(n: i64) -> i64 {
    if n < 0 {
        return sums::never(
            n);
    }
    sums::sum(n)
}
""",
    "src/sums.rs": """\
// a comment
const START: i64 = 1;
#[inline]
pub fn never(n: i64) -> i64 {
    n + 1
}
pub fn sum(n: i64) -> i64 {
    let mut sum = START;
    for i in 0..n {
        sum += i;
    }
    sum
}
""",
}
RUST_TRIAL = """
import ctypes, json
from formulacode_dagster.building.suites.harness.compiled.native import NativeWatch
watch = NativeWatch({data!r}, {{"src/sums.rs": range(1, 99), "src/lib.rs": [2, 5], "src/c.c": [1]}}, {repository!r})
fast = ctypes.CDLL({repository!r} + "/target/release/libfast.so")
fast.total.argtypes = [ctypes.c_int64]
told = [watch.find()]
for argument in (3, 0, -1):
    watch.start()
    fast.total(argument)
    told.append(watch.executed())
watch.start()
told.append(watch.executed())
print(json.dumps(told))
"""


@pytest.fixture
def crate(tmp_path, monkeypatch):
    """A crate that Debian's cargo builds under `instrument`."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    # independent of other installations: rustc and LLVM's tools are of one version here
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    for path, text in CRATE.items():
        (tmp_path / "crate" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "crate" / path).write_text(text)
    return tmp_path / "crate"


@pytest.mark.slow
def test_executed_rust_lines_are_reported_for_each_call(crate):
    told = {}
    instrument({"units": ["*.rs"], "linkers": ""}, lambda **answer: told.update(answer))
    build = ["cargo", "build", "--release", "--offline", "--quiet"]
    subprocess.run(build, cwd=crate, env={**os.environ, **told["variables"]}, check=True)
    assert not list(crate.rglob("*.profraw")), "what runs while it is built counts nothing"
    code = RUST_TRIAL.format(data=told["data"], repository=str(crate))

    def trial(path):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={"PATH": path})
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    seen, three, none, negative, nothing = trial(os.environ["PATH"])
    assert seen == ["src/lib.rs", "src/sums.rs"]
    # a constant belongs to what uses it, an attribute to its function
    assert three == {"src/lib.rs": [2], "src/sums.rs": [2, 7, 8, 9, 10, 11, 12, 13]}
    assert none == {"src/lib.rs": [2], "src/sums.rs": [2, 7, 8, 12, 13]}
    assert negative == {"src/lib.rs": [2, 5], "src/sums.rs": [3, 4, 5, 6]}
    assert nothing == {}
    assert trial("/without/llvms/tools") == [[], {}, {}, {}, {}]


def test_cargo_is_told_to_count_only_where_lines_of_rust_are_asked_for(crate):
    told = {}
    instrument({"units": ["*.c"], "linkers": ""}, lambda **answer: told.update(answer))
    assert told["variables"].keys() == {"PATH"}


CACHE = """#!/bin/sh
echo "$COMPILER_PATH $*" >>"{asked}"
case $1 in -*) exit ;; esac
exec "$@"
"""


def test_sources_without_wanted_lines_come_from_the_compilers_cache(tmp_path, monkeypatch):
    asked, cache = tmp_path / "asked", tmp_path / "tools" / "ccache"
    cache.parent.mkdir()
    cache.write_text(CACHE.format(asked=asked))
    cache.chmod(0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("PATH", f"{cache.parent}:/usr/bin:/bin")
    told = {}
    instrument({"units": ["_fast.*"], "linkers": "/var/link ers"}, lambda **answer: told.update(answer))
    for name in ("_fast", "_other"):
        (tmp_path / f"{name}.c").write_text("int f(void) { return 1; }\n")
        # as build backends call it that find a compiler's cache
        command = ["ccache", "gcc", "-c", f"{name}.c", "-o", f"{name}.o"]
        subprocess.run(command, cwd=tmp_path, env={**os.environ, **told["variables"]}, check=True)
    assert asked.read_text() == "/var/link ers /usr/bin/gcc -c _other.c -o _other.o\n"
    assert [path.name for path in tmp_path.glob("*.gcno")] == ["_fast.gcno"]
    subprocess.run(["ccache", "--version"], env={**os.environ, **told["variables"]}, check=True)
    assert asked.read_text().endswith(" --version\n")


GENERATED = """\
/* Generated by Cython 3.0.0 */
static int before;
  /* "pkg/_core.pyx":3
 * def f(x):             # <<<<<<<<<<<<<<
 */
static PyObject *f(PyObject *x) {
  __Pyx_RefNannyDeclarations
  /* "pkg/_core.pyx":4
 *     return x + 1      # <<<<<<<<<<<<<<
 */
  __pyx_r = x + 1;
  goto __pyx_L0;
  /* function exit code */
  __pyx_L1_error:;
}
  /* "cython/view.pyx":9
 */
  __pyx_of_view = 1;
"""


def test_cythons_c_tells_which_line_of_a_file_it_was_made_of():
    made = markers_of(GENERATED.split("\n"), ["src/pkg/_core.pyx", "src/pkg/_other.pyx"])
    assert {number: line for number, (_, line) in made.items() if number in {6, 7, 11, 12}} == {
        6: 3,
        7: 3,
        11: 4,
        12: 4,
    }
    assert not {2, 14, 18} & set(made)
    assert {path for path, _ in made.values()} == {"src/pkg/_core.pyx"}


PYX = """\
cimport cython

@cython.boundscheck(False)
def f(double x):
    # a comment
    cdef double y

    y = x
    return y

cdef int size
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [(3, {4}), (4, {4}), (5, set()), (6, {4}), (7, set()), (8, {8}), (9, {9}), (1, set())],
)
def test_a_line_of_cython_without_code_runs_with_what_it_belongs_to(line, expected):
    targets = native._targets(PYX.split("\n"), [line], {4, 8, 9}, "src/pkg/_core.pyx")
    assert targets.get(line, set()) == expected
