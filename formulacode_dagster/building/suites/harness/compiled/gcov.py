"""Execution counts of lines of C, C++, Fortran and Cython from gcc's coverage (`gcov`); Cython's by its generated C."""

from __future__ import annotations

import ctypes
import json
import os
import re
import subprocess
from typing import TYPE_CHECKING

from ..lines import which_file

if TYPE_CHECKING:
    from collections.abc import Sequence

GCOV_SECONDS = 60
_MARKER = re.compile(r'^\s*/\* "([^"]+)":(\d+)$')
_END_OF_CODE = re.compile(r"^\s*/\* function exit code \*/|^}")


class GcovCounts:
    """Counts lines of *paths*, in objects whose notes are kept in the folder *data*."""

    def __init__(self, data: str, paths: Sequence[str]) -> None:
        self._data, self._paths = data, paths
        self._generated: dict[str, dict[int, tuple[str, int]]] = {}
        self._notes: list[str] = []
        # below it are the notes; gcov looks for counts next to each
        os.environ["GCOV_PREFIX"] = data

    def countable(self) -> dict[str, dict[int, int]]:
        """Return the countable lines in the code compiled with coverage."""
        counted: dict[str, dict[int, int]] = {}
        self._notes = []
        # `glob` would skip a home whose name begins with a dot
        found = [os.path.join(folder, name) for folder, _, names in os.walk(self._data) for name in names]
        for notes in sorted(path for path in found if path.endswith(".gcno")):
            counts = self._counts(notes)
            if counts:
                self._notes.append(notes)
            add_counts(counted, counts)
        return counted

    def start(self) -> None:
        """Count from now on."""
        if self._notes:
            _call_in_objects("__gcov_reset")

    def counts(self) -> dict[str, dict[int, int]]:
        """Return how often each line ran since `start`; counting stops."""
        counted: dict[str, dict[int, int]] = {}
        if not self._notes:
            return counted
        for old in self._written():
            os.unlink(old)
        _call_in_objects("__gcov_dump")
        for written in self._written():
            add_counts(counted, self._counts(written))
        return counted

    def _written(self) -> list[str]:
        files = [f"{os.path.splitext(notes)[0]}.gcda" for notes in self._notes]
        return [file for file in files if os.path.exists(file)]

    def _counts(self, file: str) -> dict[str, dict[int, int]]:
        """Return how often each line of the wanted files ran, as gcov reports for one object's notes or counts."""
        command = ["gcov", "--json-format", "--stdout", file]
        try:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=GCOV_SECONDS, check=True
            )
            told = json.loads(done.stdout)
        except (OSError, subprocess.SubprocessError, ValueError):
            # an old gcov, or another compiler's notes: nothing is counted, which `seen` reports
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
        """Return, for each line of C that Cython made of a wanted file, that file and line; empty for other files."""
        if source not in self._generated:
            self._generated[source] = {}
            if os.path.isfile(self._data + source):
                with open(self._data + source, errors="replace") as file:
                    self._generated[source] = markers_of(file.read().split("\n"), self._paths)
        return self._generated[source]


def add_counts(counted: dict[str, dict[int, int]], more: dict[str, dict[int, int]]) -> None:
    """Add *more* counts to those *counted*."""
    for path, lines in more.items():
        of_file = counted.setdefault(path, {})
        for line, count in lines.items():
            of_file[line] = of_file.get(line, 0) + count


def markers_of(lines: Sequence[str], paths: Sequence[str]) -> dict[int, tuple[str, int]]:
    """Return from Cython's comments on *lines* of C the source line in one of *paths*."""
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


def _call_in_objects(function: str) -> None:
    """Call *function* of every shared object of this process that defines it."""
    with open("/proc/self/maps") as file:
        mapped = {line.split(None, 5)[-1].rstrip("\n") for line in file if ".so" in line}
    for path in sorted(mapped):
        try:
            loaded = ctypes.CDLL(path, mode=os.RTLD_LAZY | os.RTLD_NOLOAD)
            getattr(loaded, function)()
        except (OSError, AttributeError):
            continue
