"""Detects execution of certain lines of compiled code, by builds with gcc's and rustc's coverage.

Our own compilers, which the build finds before others, call the real ones with `--coverage`, and store gcov's input:
the notes of each object, and generated C, both of which vanish with the build's tree. Cargo's compilation of the
workspace itself goes through a wrapper of ours, which adds `-C instrument-coverage` (cargo's RUSTC_WORKSPACE_WRAPPER).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sysconfig
import tempfile
from typing import TYPE_CHECKING, Any

from .gcov import GcovCounts, add_counts
from .llvm_cov import LlvmCounts

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..answers import Emit

RUST = ".rs"
PYTHON = (".pyx", ".pxd", ".pxi", ".py")
COMPILERS = ("cc", "gcc", "c++", "g++", "gfortran", "f95")
COMPILER = """#!/bin/sh
compiles= wanted= object= previous=
for argument in "$@"; do
    case $argument in
    -c) compiles=yes ;;
    {units}) wanted=yes ;;
    esac
    [ "$previous" = -o ] && object=$argument
    previous=$argument
done
if [ -z "$compiles" ]; then
    count=$#
    for argument in "$@"; do
        # a list of what is exported would hide what the counts are written by
        case $argument in *--version-script*) ;; *) set -- "$@" "$argument" ;; esac
    done
    shift "$count"
    exec "{compiler}" "$@" --coverage -Wl,-u,__gcov_dump,-u,__gcov_reset
fi
[ -n "$wanted" ] || exec {cache} "{compiler}" "$@"
"{compiler}" "$@" --coverage || exit
for file in "${{object%.*}}.gcno" "$@"; do
    case $file in
    *.gcno) ;;
    *.c | *.cc | *.cpp | *.cxx) case $(head -n 1 "$file") in *Cython*) ;; *) continue ;; esac ;;
    *) continue ;;
    esac
    case $file in /*) ;; *) file=$PWD/$file ;; esac
    mkdir -p "{data}${{file%/*}}" && cp "$file" "{data}$file" || exit
done
"""
LAUNCHER = """#!/bin/sh
# what is counted is in no cache: our compilers ask it for everything else
case $1 in -*) exec "{ccache}" "$@" ;; esac
exec "$@"
"""
RUSTC = """#!/bin/sh
for argument in "$@"; do
    # these run while it is built, and would leave their counts there
    case $argument in build_script_* | proc-macro) exec "$@" ;; esac
done
exec "$@" -C instrument-coverage
"""
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_NO_CODE = re.compile(r"(?:[{}();,\s]|\belse\b|^\s*#\s*(?:include|ifn?def|if|elif|else|endif|pragma|undef).*)*")
_MACRO = re.compile(r"\s*#\s*define\s+(\w+)")
_DEFINITION = re.compile(r"\s*(?:async\s+)?(?:def|cdef|cpdef|class)\b.*[(:]")
_CONSTANT = re.compile(r"\s*(?:pub(?:\([^)]*\))?\s+)?(?:const|static(?:\s+mut)?|macro_rules!)\s+(?!fn\b)(\w+)")
_FUNCTION = re.compile(r"[\w\s()\"]*\bfn\s+\w")


def instrument(request: dict[str, Any], emit: Emit) -> None:
    """Make a folder of compilers that count lines of `units`, patterns of source names; report the variables to set.

    Lines of the workspace's Rust are counted if one of the patterns matches its sources. Other sources come from the
    cache of an earlier build with the folder `linkers`, since it is part of the cache's key.
    """
    folder = tempfile.mkdtemp(prefix="fc-coverage-")
    data, compilers = os.path.join(folder, "data"), os.path.join(folder, "bin")
    os.mkdir(data)
    os.mkdir(compilers)
    cache, ccache = "", shutil.which("ccache")
    if ccache is not None:
        _write_program(os.path.join(compilers, "ccache"), LAUNCHER.format(ccache=ccache))
        if request["linkers"]:
            cache = f"env COMPILER_PATH={shlex.quote(request['linkers'])} CCACHE_NOHASHDIR=1 {ccache}"
    units = "|".join(f"{unit}|*/{unit}" for unit in request["units"])
    triplet = sysconfig.get_config_var("MULTIARCH") or ""
    for name in [*COMPILERS, *(f"{triplet}-{name}" for name in COMPILERS)]:
        compiler = shutil.which(name)
        if compiler is not None:
            text = COMPILER.format(units=units, compiler=compiler, data=data, cache=cache)
            _write_program(os.path.join(compilers, name), text)
    variables = {"PATH": f"{compilers}{os.pathsep}{os.environ['PATH']}"}
    if any(unit.endswith(RUST) for unit in request["units"]):
        variables["RUSTC_WORKSPACE_WRAPPER"] = os.path.join(compilers, "rustc-with-coverage")
        _write_program(variables["RUSTC_WORKSPACE_WRAPPER"], RUSTC)
    emit(event="instrument", data=data, variables=variables)


def _write_program(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
    os.chmod(path, 0o700)


class NativeWatch:
    """Reports which of the lines *wanted* of compiled code run between `start` and `executed`.

    *wanted* are numbers of lines by path below the *repository*, *data* is the folder that `instrument` reported;
    without it nothing is reported. It is made before the package is imported, and `find` called afterwards. A line
    without code of its own, a declaration or part of a statement, runs with the one it belongs to; a macro's or a
    constant's where its file uses it.
    """

    def __init__(self, data: str, wanted: Mapping[str, Iterable[int]], repository: str) -> None:
        paths = [path for path, lines in wanted.items() if lines] if data else []
        rust = [path for path in paths if path.endswith(RUST)]
        self._wanted, self._repository = wanted, repository
        self._targets: dict[str, dict[int, set[int]]] = {}
        self._counters: list[GcovCounts | LlvmCounts] = []
        if len(rust) < len(paths):
            self._counters.append(GcovCounts(data, [path for path in paths if path not in rust]))
        if rust:
            self._counters.append(LlvmCounts(data, rust))

    def find(self) -> list[str]:
        """Paths with at least one countable wanted line; for others the result is unknown."""
        counted: dict[str, dict[int, int]] = {}
        for counter in self._counters:
            add_counts(counted, counter.countable())
        self._targets = {
            path: _targets(_text(self._repository, path), sorted(set(self._wanted[path])), set(lines), path)
            for path, lines in counted.items()
        }
        return sorted(path for path, targets in self._targets.items() if targets)

    def start(self) -> None:
        """Count from now on."""
        for counter in self._counters:
            counter.start()

    def executed(self) -> dict[str, list[int]]:
        """The lines executed since `start`, by path; nothing is counted any more."""
        counted: dict[str, dict[int, int]] = {}
        for counter in self._counters:
            add_counts(counted, counter.counts())
        executed = {
            path: sorted(line for line, at in self._targets[path].items() if any(counts.get(target) for target in at))
            for path, counts in counted.items()
            if path in self._targets
        }
        return {path: lines for path, lines in executed.items() if lines}


def _targets(text: list[str], wanted: list[int], counted: set[int], path: str) -> dict[int, set[int]]:
    """Return for each of the lines *wanted* the lines whose counts represent it; nothing for lines without code."""
    of_line = _of_python if path.endswith(PYTHON) else _of_rust if path.endswith(RUST) else _of_c
    known = (line for line in wanted if line in counted or line <= len(text))
    targets = {line: {line} if line in counted else of_line(text, line, counted) for line in known}
    return {line: at for line, at in targets.items() if at}


def _of_python(text: list[str], line: int, counted: set[int]) -> set[int]:
    code = text[line - 1].strip()
    if not code or code.startswith("#"):
        return set()
    if code.startswith("@"):
        later = (number for number in range(line + 1, len(text) + 1) if _DEFINITION.match(text[number - 1]))
        return counted & {next(later, 0)}
    for number in range(line - 1, 0, -1):
        if number in counted:
            return {number}
        if _DEFINITION.match(text[number - 1]):
            break
    return set()


def _of_c(text: list[str], line: int, counted: set[int]) -> set[int]:
    first = line
    while first > 1 and text[first - 2].endswith("\\"):
        first -= 1
    macro = _MACRO.match(text[first - 1])
    if macro:
        return _uses(macro[1], text, counted)
    if _NO_CODE.fullmatch(text[line - 1]):
        return set()
    for number in range(line - 1, 0, -1):
        if number in counted:
            return {number}
        if text[number - 1].startswith("}"):
            break
    for number in range(line, len(text) + 1):
        if number in counted:
            return {number}
        if ";" in text[number - 1]:
            break
    return set()


def _of_rust(text: list[str], line: int, counted: set[int]) -> set[int]:
    """A line that its compiler does not count is a declaration's: of the function below an attribute, or a constant."""
    code = text[line - 1].strip()
    if code.startswith("#["):
        later = (number for number in range(line + 1, len(text) + 1) if _FUNCTION.match(text[number - 1]))
        return counted & {next(later, 0)}
    constant = _CONSTANT.match(code)
    return _uses(constant[1], text, counted) if constant else set()


def _uses(name: str, text: list[str], counted: set[int]) -> set[int]:
    used = re.compile(rf"\b{name}\b")
    return {number for number in counted if number <= len(text) and used.search(text[number - 1])}


def _text(repository: str, path: str) -> list[str]:
    """The file's lines, comments of C blanked."""
    try:
        with open(os.path.join(repository, path), errors="replace") as file:
            text = file.read()
    except OSError:
        return []
    if not path.endswith(PYTHON):
        text = _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)
    return text.split("\n")
