"""Detects execution of certain lines, cheaply enough for benchmarks and tests, since only those are watched."""

from __future__ import annotations

import mmap
import os
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from types import CodeType, FrameType

INSTALLED = ("/site-packages/", "/dist-packages/")
TOOL_IDS = (4, 3, 2, 5)
"""Ids of `sys.monitoring` that no common tool takes first: 0 is a debugger's, 1 coverage's."""


class LineWatch:
    """Reports which of the lines *wanted* run between `start` and `stop`, in any thread or forked process.

    *wanted* are numbers of lines by path below the repository; a file counts wherever it is installed. It uses
    `sys.monitoring` if available (CPython 3.12), where a line costs something only once, and else `sys.settrace`, where
    each line costs in a function with unseen lines, and any other function costs as little as a call. Of each file it
    also reports whether any of its code was called.
    """

    def __init__(self, wanted: Mapping[str, Iterable[int]]) -> None:
        self._wanted = sorted((path, line) for path, lines in wanted.items() for line in set(lines))
        self._paths = sorted(wanted)
        self._basenames = {os.path.basename(path) for path in self._paths}
        # shared, so that lines of a forked process are seen as well
        self._executed = mmap.mmap(-1, max(1, len(self._wanted) + len(self._paths)))
        self._codes: dict[int, tuple[CodeType, dict[int, int]]] = {}
        self._watched: dict[int, tuple[CodeType, dict[int, int], int]] = {}
        """Code of watched files, with the places of its lines and that of its file."""
        self._files: dict[str, tuple[dict[int, int], int] | None] = {}
        self._tool: int | None = None

    @property
    def is_slow(self) -> bool:
        """True if it traces every call, which makes a benchmark up to twenty times slower."""
        return bool(self._paths) and _free_tool() is None

    def start(self) -> None:
        """Watch from now on: this thread, and every thread started later."""
        if not self._paths:
            return
        self._tool = _free_tool()
        if self._tool is not None:
            self._monitor(self._tool)
        else:
            on_call = self._tracer()
            threading.settrace(on_call)
            sys.settrace(on_call)

    def stop(self) -> None:
        """Look no more."""
        if self._tool is not None:
            for event in (_events().PY_START, _events().PY_RESUME, _events().LINE):
                _monitoring().register_callback(self._tool, event, None)
            _monitoring().set_events(self._tool, 0)
            _monitoring().free_tool_id(self._tool)
            self._tool = None
        elif self._paths:
            sys.settrace(None)
            threading.settrace(None)

    def executed(self) -> dict[str, list[int]]:
        """The lines executed since it was made or last cleared, by path."""
        lines: dict[str, list[int]] = {}
        for place, (path, line) in enumerate(self._wanted):
            if self._executed[place]:
                lines.setdefault(path, []).append(line)
        return lines

    def entered(self) -> set[str]:
        """Return the files of which code was called since it was made or last cleared."""
        return {path for place, path in enumerate(self._paths, len(self._wanted)) if self._executed[place]}

    def clear(self) -> None:
        """Forget the executed lines, so that each of several calls has its own."""
        self._executed[:] = bytes(len(self._executed))
        # other threads add to it meanwhile
        for code in list(self._watched):
            self._codes.pop(code, None)
        if self._tool is not None:
            _monitoring().restart_events()

    def _monitor(self, tool: int) -> None:
        monitoring, events = _monitoring(), _events()
        done = monitoring.DISABLE

        def on_entry(code: CodeType, _offset: int) -> object:
            if self._places(code):
                monitoring.set_local_events(tool, code, events.LINE)
            return done

        def on_line(code: CodeType, line: int) -> object:
            place = self._places(code).get(line)
            if place is not None:
                self._executed[place] = 1
            return done

        monitoring.use_tool_id(tool, "fc-lines")
        monitoring.register_callback(tool, events.PY_START, on_entry)
        monitoring.register_callback(tool, events.PY_RESUME, on_entry)
        monitoring.register_callback(tool, events.LINE, on_line)
        monitoring.set_events(tool, events.PY_START | events.PY_RESUME)
        # lines seen by an earlier watch were disabled for every tool with the same number
        monitoring.restart_events()

    def _tracer(self) -> Callable[[FrameType, str, object], Any]:
        # every call of every function comes here: no attribute is looked up that need not be
        codes, look_at, executed = self._codes, self._places, self._executed

        def on_call(frame: FrameType, _event: str, _argument: object) -> Any:
            code = frame.f_code
            entry = codes.get(id(code))
            return on_line if (look_at(code) if entry is None else entry[1]) else None

        def on_line(frame: FrameType, event: str, _argument: object) -> Any:
            if event == "line":
                places = look_at(frame.f_code)
                place = places.pop(frame.f_lineno, None)
                if place is not None:
                    executed[place] = 1
                if not places:
                    frame.f_trace = None
                    return None
            return on_line

        return on_call

    def _places(self, code: CodeType) -> dict[int, int]:
        """The wanted lines of *code* itself, not of functions inside, and the place of each."""
        entry = self._codes.get(id(code))
        if entry is None:
            places: dict[int, int] = {}
            found = self._of_file(code.co_filename)
            if found is not None:
                if id(code) not in self._watched:
                    wanted, file = found
                    places = {line: wanted[line] for line in _lines_of(code) if line in wanted}
                    self._watched[id(code)] = code, places, file
                _, places, file = self._watched[id(code)]
                self._executed[file] = 1
            # the code is kept, or another could get its id
            entry = self._codes[id(code)] = code, places.copy()
        return entry[1]

    def _of_file(self, file: str) -> tuple[dict[int, int], int] | None:
        """Return the places of the wanted lines of *file*, and its own; None if it is not watched."""
        if file not in self._files:
            self._files[file] = None
            if os.path.basename(file) in self._basenames:
                path = which_file(os.path.abspath(file), self._paths)
                if path is not None:
                    places = {line: n for n, (other, line) in enumerate(self._wanted) if other == path}
                    self._files[file] = places, len(self._wanted) + self._paths.index(path)
        return self._files[file]


def which_file(file: str, paths: Iterable[str]) -> str | None:
    """Return which of *paths* of the repository *file* is, in the checkout or as installed; None if none is."""
    for marker in INSTALLED:
        _, separator, installed = file.rpartition(marker)
        if separator:
            return next((path for path in sorted(paths) if f"/{path}".endswith(f"/{installed}")), None)
    return max((path for path in paths if file.endswith(f"/{path}")), key=len, default=None)


def _lines_of(code: CodeType) -> set[int]:
    import dis

    return {line for _, line in dis.findlinestarts(code) if line is not None}


def executable_lines(source: bytes) -> frozenset[int]:
    """Return the executable lines of a Python file; none if it does not compile."""
    try:
        codes = [compile(source, "", "exec", dont_inherit=True)]
    except (SyntaxError, ValueError, RecursionError):
        return frozenset()
    lines: set[int] = set()
    while codes:
        code = codes.pop()
        lines |= _lines_of(code)
        codes += [constant for constant in code.co_consts if hasattr(constant, "co_code")]
    return frozenset(line for line in lines if line > 0)


def _free_tool() -> int | None:
    """A number for a tool of `sys.monitoring` that no one has taken; None without it."""
    if not hasattr(sys, "monitoring"):
        return None
    return next((tool for tool in TOOL_IDS if _monitoring().get_tool(tool) is None), None)


def _monitoring() -> Any:
    return getattr(sys, "monitoring")  # noqa: B009 - came with CPython 3.12, and types are checked for 3.11


def _events() -> Any:
    return _monitoring().events
