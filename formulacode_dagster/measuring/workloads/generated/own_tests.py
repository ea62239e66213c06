"""Tests of this repository as benchmarks: each call gets fresh fixtures, set up before the clock starts.

This file was generated next to the repository's benchmarks and is not part of it. It needs pytest.
"""

from __future__ import annotations

import os
import unittest
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from _pytest.config import _prepareconfig
from _pytest.main import Session
from _pytest.runner import call_and_report

if TYPE_CHECKING:
    from typing import Any, Literal

_VERSION = tuple(int(part) for part in pytest.__version__.split(".")[:2])
_OPTIONS = (
    *("-qqq", "-s", "--tb=short", "--assert=plain", "-p", "no:cacheprovider", "-p", "no:faulthandler"),
    *(("-W", "ignore") if _VERSION >= (3, 1) else ()),
    # a stand-in is timed in place of pytest-benchmark, like everything else
    *("-p", "no:benchmark"),
    # the installed package is timed: the checkout comes last in the path
    "--import-mode=append",
    # pytest 7 rejects an empty setting without a configuration file
    *(("-p", "no:python_path") if _VERSION < (8, 0) else ("-o", "pythonpath=")),
    *("-o", "addopts=", "-o", "filterwarnings=", "-o", "required_plugins=", "-o", "minversion="),
)

# set at the end of the file, which names the tests
_REPOSITORY = Path()
_FOLDER = ""
_ITEMS: dict[str, dict[str, Any] | Exception] = {}


class _Handed:
    """Replaces the fixture `benchmark`: the callable that a test passes to it is timed, not the test around it."""

    def __init__(self) -> None:
        self.extra_info: dict[str, Any] = {}
        self._prepare: Any = None

    def __call__(self, function: Any, *arguments: Any, **keywords: Any) -> Any:
        return self.pedantic(function, arguments, keywords)

    def pedantic(self, target: Any, args: Any = (), kwargs: Any = None, setup: Any = None, **_: Any) -> Any:
        """Call *target* once, and remember it; *setup* may give it fresh arguments before each call."""

        def prepare() -> Any:
            arguments, keywords = (setup() if setup is not None else None) or (args, kwargs or {})
            return lambda: target(*arguments, **keywords)

        self._prepare = prepare
        return prepare()()

    def prepared(self) -> Any:
        """The callable to time."""
        if self._prepare is None:
            raise NotImplementedError("the test passed no function to the benchmark fixture")
        return self._prepare()


class _Plugin:
    @pytest.fixture
    def benchmark(self) -> _Handed:
        return _Handed()


class _Workload:
    """Each parameter is a test of one function of `file`, by the part of its node id after the file.

    With `grown`, a rule and a factor follow, ` | sizes x10`, by which the test is scaled or repeated.
    """

    number = 1
    file = ""
    grown = False

    def setup(self, test: str) -> None:
        self._before = os.getcwd()
        os.chdir(_FOLDER)
        items = _ITEMS[self.file]
        if isinstance(items, Exception):
            raise items
        name, _, growth = test.rpartition(" | ") if self.grown else (test, "", "")
        self._item: Any = items[name]
        times = self._grow(*growth.rsplit(" x", 1)) if self.grown else 1
        self._item._initrequest()
        self._run("setup")
        function = self._item.obj
        arguments = {name: self._item.funcargs[name] for name in self._item._fixtureinfo.argnames}
        self._case = getattr(function, "__self__", None)
        if isinstance(self._case, unittest.TestCase):
            self._case.setUp()
        self._call: Any = lambda: function(**arguments)
        handed = self._item.funcargs.get("benchmark")
        if isinstance(handed, _Handed):
            self._call()
            self._call = handed.prepared()
        if times > 1:
            once = self._call
            self._call = lambda: [once() for _ in range(times)]

    def time_call(self, _test: str) -> Any:
        # the result of a passed callable is compared like those of other benchmarks; a test itself returns nothing
        return self._call()

    def teardown(self, _test: str) -> None:
        if isinstance(self._case, unittest.TestCase):
            try:
                self._case.tearDown()
            finally:
                # the next call would see their cleanup
                self._case.doCleanups()
        self._run("teardown", nextitem=None)
        os.chdir(self._before)

    def _grow(self, rule: str, factor: str) -> int:
        """Return how often the test is called; otherwise its file is changed, in this process only."""
        from .growing import REPEATS, grow

        if rule == REPEATS:
            return int(factor)
        grow(self._item.module, rule, int(factor))
        return 1

    def _run(self, phase: Literal["setup", "teardown"], **options: Any) -> None:
        # pytest's own fixtures request the reports that it makes in parallel
        report = call_and_report(self._item, phase, log=False, **options)
        if report.skipped:
            raise NotImplementedError(str(report.longrepr))
        if report.failed:
            raise RuntimeError(str(report.longrepr))


def _collected(file: str, functions: list[str]) -> dict[str, Any] | Exception:
    """Return the tests of these functions and methods of *file*, `Class::function`, by the part of their ids after the
    file.

    An error in collecting a file is raised when its tests are set up: other files are not affected.
    """
    before = os.getcwd()
    os.chdir(_FOLDER)
    # tests inside the package are the installed ones, if they exist
    os.environ["PY_IGNORE_IMPORTMISMATCH"] = "1"
    try:
        paths = [f"{_REPOSITORY / file}::{function}" for function in functions]
        config = _prepareconfig([*paths, *_OPTIONS], [_Plugin()])
        config._do_configure()
        # pytest 5.3 and before made it of the configuration itself
        session = Session.from_config(config) if hasattr(Session, "from_config") else Session(config)
        config.hook.pytest_sessionstart(session=session)
        return {item.nodeid.partition("::")[2]: item for item in session.perform_collect()}
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a plugin or a module of tests may raise anything, pytest's own too
        return error if isinstance(error, Exception) else RuntimeError(f"{type(error).__name__}: {error}")
    finally:
        os.chdir(before)


def _names(file: str, function: str) -> list[str]:
    """Return every test of *function* that pytest finds; its own name if the file cannot be collected."""
    items = _ITEMS[file]
    names = [] if isinstance(items, Exception) else [name for name in items if name.partition("[")[0] == function]
    return names or [function]
