"""Tests of this repository as benchmarks: each call finds fixtures of its own, set up before the clock starts.

This file was laid beside the repository's benchmarks and is no part of it. It needs pytest.
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
    # A stand-in is timed in place of pytest-benchmark, by whoever times everything else.
    *("-p", "no:benchmark"),
    # What is installed is timed: the checkout comes last, and gives but what is nowhere else.
    "--import-mode=append",
    # pytest 7 takes an empty setting for an error where there is no configuration file
    *(("-p", "no:python_path") if _VERSION < (8, 0) else ("-o", "pythonpath=")),
    *("-o", "addopts=", "-o", "filterwarnings=", "-o", "required_plugins=", "-o", "minversion="),
)

# set at the end of the file, where the tests are named
_REPOSITORY = Path()
_FOLDER = ""
_ITEMS: dict[str, dict[str, Any] | Exception] = {}


class _Handed:
    """Stands in for the fixture `benchmark`: what a test hands it is what is timed, and not the test around it."""

    def __init__(self) -> None:
        self.extra_info: dict[str, Any] = {}
        self._prepare: Any = None

    def __call__(self, function: Any, *arguments: Any, **keywords: Any) -> Any:
        return self.pedantic(function, arguments, keywords)

    def pedantic(self, target: Any, args: Any = (), kwargs: Any = None, setup: Any = None, **_: Any) -> Any:
        """Call *target* once, and keep it; *setup* may give it arguments, anew before each call."""

        def prepare() -> Any:
            arguments, keywords = (setup() if setup is not None else None) or (args, kwargs or {})
            return lambda: target(*arguments, **keywords)

        self._prepare = prepare
        return prepare()()

    def prepared(self) -> Any:
        """What is to be timed."""
        if self._prepare is None:
            raise NotImplementedError("the test handed nothing to the benchmark fixture")
        return self._prepare()


class _Plugin:
    @pytest.fixture
    def benchmark(self) -> _Handed:
        return _Handed()


class _Workload:
    """Every parameter is a test of one function of `file`, by what follows the file in its node id.

    With `grown`, a rule and a factor follow, ` | sizes x10`, by which the test is grown, or called so often at once.
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
        # what a test hands over is compared as what other benchmarks return is; a test itself returns nothing
        return self._call()

    def teardown(self, _test: str) -> None:
        if isinstance(self._case, unittest.TestCase):
            try:
                self._case.tearDown()
            finally:
                # the next call would find what they undo
                self._case.doCleanups()
        self._run("teardown", nextitem=None)
        os.chdir(self._before)

    def _grow(self, rule: str, factor: str) -> int:
        """How often the test is to be called; otherwise its file is changed, in this process alone."""
        from .growing import REPEATS, grow

        if rule == REPEATS:
            return int(factor)
        grow(self._item.module, rule, int(factor))
        return 1

    def _run(self, phase: Literal["setup", "teardown"], **options: Any) -> None:
        # fixtures of pytest's own ask for the reports that it makes beside
        report = call_and_report(self._item, phase, log=False, **options)
        if report.skipped:
            raise NotImplementedError(str(report.longrepr))
        if report.failed:
            raise RuntimeError(str(report.longrepr))


def _collected(file: str, functions: list[str]) -> dict[str, Any] | Exception:
    """The tests of these functions and methods of *file*, `Class::function`, by what follows the file in their ids.

    What keeps one file from being collected is raised where its tests are set up: other files are none the worse.
    """
    before = os.getcwd()
    os.chdir(_FOLDER)
    # tests inside the package are those that are installed, where they are
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
    """Every test of *function* that pytest finds; its own name where the file cannot be collected."""
    items = _ITEMS[file]
    names = [] if isinstance(items, Exception) else [name for name in items if name.partition("[")[0] == function]
    return names or [function]
