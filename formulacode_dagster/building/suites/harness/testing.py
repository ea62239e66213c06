"""Running the repository's own tests with pytest, and which lines each of them executes."""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import inspect
import os
import signal
import sys
import time
import unittest
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import suite, tools
from .collect import lay_built_files, provide_pytest, run_options
from .files_of_tests import files_of_tests
from .lines import LineWatch, executable_lines
from .mutations import mutate_on_import, mutations
from .own_time import Stretch

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from .answers import Emit

MESSAGE_CHARACTERS = 3000
TOOLS = ("_pytest", "pytest", "pluggy", "unittest", "builtins", "operator", "math", "numpy.testing", "warnings")
"""Modules, with those below them, that decide how a test ends."""
_ENDED_BEFORE = {3: "ended with an error of its own", 4: "did not start"}
"""Exit codes of pytest: https://docs.pytest.org/en/stable/reference/exit-codes.html"""


class TooLongError(BaseException):
    """A test took too long. No `except Exception` of the test can swallow this."""


def run_tests(request: dict[str, Any], emit: Emit) -> None:
    """Run tests below `folder`, each within `limit` seconds, all of them within `budget`; report each as it ends.

    The `named` tests are run, if any; else those of at most `most` files, first files named after `words`, then those
    that mention them: `turn` tests of each and then the next of each, or all of each if it is 0. None of `without` is
    run: they have ended a process. `watched` are lines by file of `repository`: reported first are the executable ones,
    then those run by imports after collection, and with each test the lines it runs and its seconds, of the call
    itself, without fixtures, `setUp` and `tearDown`. After `enough` passing tests whose calls run watched lines for
    `least` seconds no other is begun; 0 means no such end. With a `mutation` its file is imported with that fault, and
    the first failing test is the last. With `tools`, hashes of the code that decides how tests end are reported.
    """
    folder = Path(request["folder"])
    lay_built_files(str(folder), request["packages"])
    os.dup2(2, 1)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    provide_pytest(request)
    os.chdir(str(folder))
    named = frozenset(request["named"])
    files, left_out = files_of_tests(folder, request, named)
    emit(event="files", files=len(files), left_out=left_out)
    if not files:
        emit(event="ran", pytest="")
        return
    if importlib.util.find_spec("pytest") is None:
        emit(event="uncollected", name="pytest", message="the image has no pytest: no lock of its tests could be made")
        emit(event="ran", pytest="")
        return
    if request["mutation"]:
        mutate_on_import(request["mutation"], emit)
    watching = _Watching(request, emit)
    pytest = importlib.import_module("pytest")
    signal.signal(signal.SIGALRM, _on_alarm)
    plugin = RunPlugin(emit, watching, request, named)
    first = ["--exitfirst"] if request["mutation"] else []
    said = _Said(sys.stderr)
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = int(pytest.main([*files, *first, *run_options(pytest.__version__)], plugins=[plugin]))
        if status in _ENDED_BEFORE:
            emit(event="uncollected", name="pytest", message=f"{_ENDED_BEFORE[status]}: {said.tail()}")
    except BaseException:  # noqa: BLE001 - a plugin may raise anything before pytest is there to report it
        emit(event="uncollected", name="plugins", message=suite.failure_message())
    finally:
        watching.stop()
    if request.get("tools"):
        emit(event="tools", codes=tools.hashes(TOOLS))
    emit(event="ran", pytest=pytest.__version__, slowed=watching.is_slow)


class _Said:
    """A stream that keeps its end: pytest reports a failed start only there."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._kept = ""

    def write(self, text: str) -> int:
        """Pass *text* on."""
        self._kept = (self._kept + text)[-MESSAGE_CHARACTERS:]
        return int(self._stream.write(text))

    def tail(self) -> str:
        """Return the last characters written."""
        return self._kept.strip()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def in_turns(items: list[Any], size: int) -> list[Any]:
    """Return *items* so that *size* tests of each file come before more of any: a single file may use all the time."""
    seen: Counter[str] = Counter()
    turns: list[list[Any]] = []
    for item in items:
        file = item.nodeid.partition("::")[0]
        turn = seen[file] // size
        seen[file] += 1
        turns += [[]] if turn == len(turns) else []
        turns[turn].append(item)
    return [item for turn in turns for item in turn]


def name_of(item: Any, folder: str) -> str:
    """Return pytest's id of *item*, with its file relative to *folder*.

    Its own is relative to its root, the folder of its configuration, above *folder* or below.
    https://docs.pytest.org/en/stable/reference/customize.html#initialization-determining-rootdir-and-configfile
    """
    path = os.path.realpath(str(getattr(item, "path", None) or item.fspath))
    file = Path(os.path.relpath(path, os.path.realpath(folder))).as_posix()
    return "::".join([file, *item.nodeid.split("::")[1:]])


class RunPlugin:
    """A plugin that runs the requested tests, and reports how each ended."""

    def __init__(self, emit: Emit, watching: _Watching, request: dict[str, Any], named: frozenset[str]) -> None:
        self._emit, self._watching, self._named = emit, watching, named
        self._folder = request["folder"]
        self._names: dict[str, str] = {}
        self._without = frozenset(request["without"])
        self._limit = float(request["limit"])
        self._turn = int(request["turn"])
        self._enough, self._least = int(request["enough"]), float(request["least"])
        self._found = 0
        self._deadline = time.monotonic() + float(request["budget"])
        self._outcome, self._message, self._seconds = "", "", 0.0
        self._call_seconds: float | None = None
        self._stretch = Stretch()

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Keep only those requested; report the lines run by imports once all are imported."""
        self._names = {item.nodeid: name_of(item, self._folder) for item in items}
        items[:] = [item for item in items if self._is_asked_for({item.nodeid, self._names[item.nodeid]})]
        if self._turn:
            items[:] = in_turns(items, self._turn)
        self._watching.tell(event="imported")

    def _is_asked_for(self, names: set[str]) -> bool:
        return self._without.isdisjoint(names) and (not self._named or not self._named.isdisjoint(names))

    def pytest_collectreport(self, report: Any) -> None:
        """A module that cannot be looked through has no tests on this side."""
        if report.failed:
            self._emit(event="uncollected", name=report.nodeid, message=str(report.longrepr)[-MESSAGE_CHARACTERS:])

    def pytest_runtest_logstart(self, nodeid: str, location: object) -> None:
        """Named before it runs, so that one that ends the process is known."""
        del location
        self._outcome, self._message, self._seconds = "passed", "", 0.0
        self._call_seconds = None
        self._emit(event="started", name=self._names[nodeid])
        self._watching.clear()
        signal.setitimer(signal.ITIMER_REAL, self._limit)

    def pytest_runtest_call(self, item: Any) -> None:
        """For a test of unittest pytest's call includes `setUp` and `tearDown`: only its method is watched."""
        case = getattr(item, "_testcase", None) or getattr(item, "instance", None)
        if isinstance(case, unittest.TestCase) and not inspect.iscoroutinefunction(item.obj):
            # which of the two it takes depends on pytest's version
            item.obj = self._looked_at(item.obj)
            setattr(case, item.name, item.obj)

    def _looked_at(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*arguments: Any, **keywords: Any) -> Any:
            self._watching.begin_call()
            stretch = Stretch()
            try:
                return method(*arguments, **keywords)
            finally:
                self._call_seconds = stretch.seconds()
                self._watching.end_call()

        return call

    def pytest_runtest_logreport(self, report: Any) -> None:
        """One of setup, call and teardown has ended: the worst of them is how the test ended."""
        self._seconds += float(report.duration)
        if report.when == "setup":
            self._watching.begin_call()
            self._stretch = Stretch()
        elif report.when == "call" and self._call_seconds is None:
            # pytest's own work around the call is in it
            self._call_seconds = min(float(report.duration), self._stretch.seconds())
            self._watching.end_call()
        if report.failed:
            text = str(report.longrepr)
            self._outcome = "timeout" if TooLongError.__name__ in text else "failed"
            self._message = text[-MESSAGE_CHARACTERS:]
        elif report.skipped and self._outcome == "passed":
            self._outcome = "skipped"

    def pytest_runtest_logfinish(self, nodeid: str, location: object) -> None:
        """The test has ended in any way."""
        del location
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._watching.tell(
            event="test",
            name=self._names[nodeid],
            outcome=self._outcome,
            seconds=self._seconds,
            message=self._message,
            call_seconds=self._call_seconds or 0.0,
            call_lines=self._watching.called,
        )
        is_found = self._outcome == "passed" and self._watching.called
        self._found += bool(is_found and (self._call_seconds or 0.0) >= self._least)

    def pytest_runtest_protocol(self, item: Any, nextitem: object) -> None:
        """Stop before the first test without time, or after the last needed one."""
        del nextitem
        if self._enough and self._found >= self._enough:
            self._stop(item.session, "enough")
        if time.monotonic() > self._deadline:
            self._stop(item.session, "no_time")

    def _stop(self, session: Any, why: str) -> None:
        session.shouldstop = why
        self._emit(event=why)
        raise session.Interrupted(why)


class _Watching:
    """The executed lines of the changed files: those that are watched, and whether any code of their file."""

    def __init__(self, request: dict[str, Any], emit: Emit) -> None:
        self._emit = emit
        self._watched: dict[str, frozenset[int]] = {}
        for path, lines in request["watched"].items():
            file = Path(request["repository"], path)
            source = file.read_bytes() if file.is_file() else b""
            self._watched[path] = executable_lines(source) & frozenset(lines)
            places = mutations(source, self._watched[path])
            emit(event="executable", path=path, lines=sorted(self._watched[path]), mutations=places)
        self._before: dict[str, set[int]] = {}
        self._entered: set[str] = set()
        self.called: dict[str, list[int]] = {}
        """Lines among those watched that the last call ran."""
        self._watch = LineWatch(self._watched)
        self.is_slow = self._watch.is_slow
        self._watch.start()

    def clear(self) -> None:
        """Forget the lines run until now."""
        self._before, self._entered, self.called = {}, set(), {}
        self._watch.clear()

    def begin_call(self) -> None:
        """Watch a call by itself, and keep the lines run before."""
        self._before, self._entered = self._executed(), self._entered | self._watch.entered()
        self._watch.clear()

    def end_call(self) -> None:
        """The call that was begun last has ended."""
        self.called = self._watch.executed()

    def tell(self, **fields: object) -> None:
        """Send *fields*, with the lines run since the last `clear`."""
        lines = {path: sorted(lines) for path, lines in self._executed().items()}
        self._emit(lines=lines, entered=sorted(self._entered | self._watch.entered()), **fields)

    def _executed(self) -> dict[str, set[int]]:
        now = self._watch.executed()
        return {path: self._before.get(path, set()).union(now.get(path, ())) for path in {*self._before, *now}}

    def stop(self) -> None:
        """Look no more."""
        self._watch.stop()


def _on_alarm(_signal: int, _frame: FrameType | None) -> None:
    raise TooLongError("the test takes too long")
