"""Which of certain lines of compiled code are executed, told by gcc's coverage (`gcov`), Cython's by its generated C.

Compilers of ours, which the build finds before others, call the real ones with `--coverage`, and keep what gcov needs:
the notes of each object, and generated C, both of which go with the build's tree.
"""

from __future__ import annotations

import ctypes
import glob
import json
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
from typing import TYPE_CHECKING, Any

from .lines import which_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .answers import Emit

COMPILERS = ("cc", "gcc", "c++", "g++", "gfortran", "f95")
GCOV_SECONDS = 60
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
[ -n "$wanted" ] || exec "{compiler}" "$@"
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
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
_NO_CODE = re.compile(r"(?:[{}();,\s]|\belse\b|^\s*#\s*(?:include|ifn?def|if|elif|else|endif|pragma|undef).*)*")
_MACRO = re.compile(r"\s*#\s*define\s+(\w+)")
_MARKER = re.compile(r'^\s*/\* "([^"]+)":(\d+)$')
_END_OF_CODE = re.compile(r"^\s*/\* function exit code \*/|^}")
_DEFINITION = re.compile(r"\s*(?:async\s+)?(?:def|cdef|cpdef|class)\b.*[(:]")


def instrument(request: dict[str, Any], emit: Emit) -> None:
    """Make a folder of compilers that count lines of `units`, patterns of names of sources; tell the path to use."""
    folder = tempfile.mkdtemp(prefix="fc-coverage-")
    data, compilers = os.path.join(folder, "data"), os.path.join(folder, "bin")
    os.mkdir(data)
    os.mkdir(compilers)
    units = "|".join(f"{unit}|*/{unit}" for unit in request["units"])
    triplet = sysconfig.get_config_var("MULTIARCH") or ""
    for name in [*COMPILERS, *(f"{triplet}-{name}" for name in COMPILERS)]:
        compiler = shutil.which(name)
        if compiler is not None:
            path = os.path.join(compilers, name)
            with open(path, "w") as file:
                file.write(COMPILER.format(units=units, compiler=compiler, data=data))
            os.chmod(path, 0o700)
    emit(event="instrument", data=data, path=f"{compilers}{os.pathsep}{os.environ['PATH']}")


class NativeWatch:
    """Tells which of the lines *wanted* of compiled code are executed between `start` and `executed`.

    *wanted* are numbers of lines by path below the *repository*, *data* is the folder that `instrument` told. A line
    without code of its own, a declaration or part of a statement, is executed with the one that it belongs to; a
    macro's where the macro is used in its file.
    """

    def __init__(self, data: str, wanted: Mapping[str, Iterable[int]], repository: str) -> None:
        self._data = data
        self._paths = [path for path, lines in wanted.items() if lines] if data else []
        self._generated: dict[str, dict[int, tuple[str, int]]] = {}
        if data:
            # below it are the notes, and beside each of those its counts are looked for
            os.environ["GCOV_PREFIX"] = data
        counted: dict[str, dict[int, int]] = {}
        self._notes = []
        for notes in sorted(glob.glob(os.path.join(glob.escape(data), "**", "*.gcno"), recursive=True) if data else []):
            counts = self._counts(notes)
            if counts:
                self._notes.append(notes)
            for path, lines in counts.items():
                counted.setdefault(path, {}).update(lines)
        self._targets = {
            path: _targets(_text(repository, path), sorted(set(wanted[path])), set(lines), path)
            for path, lines in counted.items()
        }

    @property
    def seen(self) -> list[str]:
        """Paths of which some wanted line is counted at all; of others nothing can be told."""
        return sorted(path for path, targets in self._targets.items() if targets)

    def start(self) -> None:
        """Count from now on."""
        if self._notes:
            _call_in_objects("__gcov_reset")

    def executed(self) -> dict[str, list[int]]:
        """The lines executed since `start`, by path; nothing is counted any more."""
        if not self._notes:
            return {}
        for old in self._written():
            os.unlink(old)
        _call_in_objects("__gcov_dump")
        executed: dict[str, set[int]] = {}
        for written in self._written():
            for path, counts in self._counts(written).items():
                hit = {line for line, at in self._targets[path].items() if any(counts.get(target) for target in at)}
                executed.setdefault(path, set()).update(hit)
        return {path: sorted(lines) for path, lines in executed.items() if lines}

    def _written(self) -> list[str]:
        files = [f"{os.path.splitext(notes)[0]}.gcda" for notes in self._notes]
        return [file for file in files if os.path.exists(file)]

    def _counts(self, file: str) -> dict[str, dict[int, int]]:
        """How often each line of the wanted files was executed, as gcov tells of one object's notes or counts."""
        command = ["gcov", "--json-format", "--stdout", file]
        try:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=GCOV_SECONDS, check=True
            )
            told = json.loads(done.stdout)
        except (OSError, subprocess.SubprocessError, ValueError):
            # an old gcov, or another compiler's notes: nothing is counted, which `seen` tells
            return {}
        counts: dict[str, dict[int, int]] = {}
        for source in told["files"]:
            absolute = os.path.normpath(os.path.join(told["current_working_directory"], source["file"]))
            path, markers = which_file(absolute, self._paths), self._markers(absolute)
            for line in source["lines"]:
                number, count = line["line_number"], line["count"]
                for origin in ((path, number), markers.get(number)):
                    if origin is not None and origin[0] is not None:
                        of_file = counts.setdefault(origin[0], {})
                        of_file[origin[1]] = of_file.get(origin[1], 0) + count
        return counts

    def _markers(self, source: str) -> dict[int, tuple[str, int]]:
        """For each line of C that Cython made of a wanted file, that file and the line there; empty for other files."""
        if source not in self._generated:
            self._generated[source] = {}
            if os.path.isfile(self._data + source):
                with open(self._data + source, errors="replace") as file:
                    self._generated[source] = markers_of(file.read().split("\n"), self._paths)
        return self._generated[source]


def markers_of(lines: list[str], paths: list[str]) -> dict[int, tuple[str, int]]:
    """What Cython's comments say of *lines* of C: which line of which of *paths* each was made of."""
    made: dict[int, tuple[str, int]] = {}
    origin: tuple[str, int] | None = None
    files: dict[str, str | None] = {}
    for number, line in enumerate(lines, 1):
        marker = _MARKER.match(line)
        if marker:
            name = marker[1]
            if name not in files:
                bare = f"/{name.lstrip('./')}"
                files[name] = next((p for p in paths if f"/{p}".endswith(bare) or bare.endswith(f"/{p}")), None)
            path = files[name]
            origin = None if path is None else (path, int(marker[2]))
        elif _END_OF_CODE.match(line):
            origin = None
        if origin is not None:
            made[number] = origin
    return made


def _targets(text: list[str], wanted: list[int], counted: set[int], path: str) -> dict[int, set[int]]:
    """For each of the lines *wanted* the lines whose count tells of it; nothing for lines without code."""
    of_line = _of_python if path.endswith((".pyx", ".pxd", ".pxi", ".py")) else _of_c
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
        used = re.compile(rf"\b{macro[1]}\b")
        return {number for number in counted if number <= len(text) and used.search(text[number - 1])}
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


def _text(repository: str, path: str) -> list[str]:
    """The file's lines, comments of C blanked."""
    try:
        with open(os.path.join(repository, path), errors="replace") as file:
            text = file.read()
    except OSError:
        return []
    if not path.endswith((".pyx", ".pxd", ".pxi", ".py")):
        text = _COMMENT.sub(lambda match: "\n" * match[0].count("\n"), text)
    return text.split("\n")


def _call_in_objects(function: str) -> None:
    """Call *function* of every shared object of this process that has one of its own."""
    with open("/proc/self/maps") as file:
        mapped = {line.split(None, 5)[-1].rstrip("\n") for line in file if ".so" in line}
    for path in sorted(mapped):
        try:
            loaded = ctypes.CDLL(path, mode=os.RTLD_LAZY | os.RTLD_NOLOAD)
            getattr(loaded, function)()
        except (OSError, AttributeError):
            continue
