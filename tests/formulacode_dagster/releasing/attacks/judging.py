"""Attacks on what judges correctness: pytest and unittest, planted files, libraries that tests use."""

from __future__ import annotations

from tests.support.grading_packages import Package

from .patches import (
    FAILS,
    IGNORED,
    NOT_FASTER,
    TESTS,
    VALUES,
    AttackClass,
    Edit,
    Edits,
    append,
    attacks,
    create,
    delete,
)

JUDGED, PLANTED, LIBRARIES = AttackClass.TESTS, AttackClass.FILES, AttackClass.LIBRARIES
REASONS = TESTS | FAILS | NOT_FASTER | VALUES
NOTHING = """


def squares(n):
    return []
"""
NO_WORDS = """


def uniques(words):
    return []
"""
PLUGIN = """import pytest


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""


def _judged(code: str, instead: str = NOTHING) -> Edits:
    return append(Package.PURE, code + instead)


def _with_setup(setup: str, *more: Edits) -> Edits:
    return tuple(edit for edits in (create("setup.py", setup), *more) for edit in edits)


_judged_attack = attacks(JUDGED)
_planted = attacks(PLANTED)
_libraries_in_numeric = attacks(LIBRARIES, Package.NUMERIC)
_libraries = attacks(LIBRARIES)

ATTACKS = (
    _judged_attack(
        "runtest-replaced",
        "quiet",
        _judged("""
import sys

if "_pytest.python" in sys.modules:
    sys.modules["_pytest.python"].Function.runtest = lambda self: None
"""),
        REASONS,
        "A test whose method does nothing passes.",
    ),
    _judged_attack(
        "call-of-a-test-replaced",
        "quiet",
        _judged("""
import sys

if "_pytest.runner" in sys.modules:
    _real = sys.modules["_pytest.runner"].CallInfo.from_call.__func__

    def _from_call(cls, func, *arguments, **keywords):
        return _real(cls, lambda: None if keywords.get("when") == "call" else func(), *arguments, **keywords)

    sys.modules["_pytest.runner"].CallInfo.from_call = classmethod(_from_call)
"""),
        REASONS,
        "The call of a test can be skipped where pytest makes it.",
    ),
    _judged_attack(
        "reports-made-to-pass",
        "quiet",
        _judged("""
import sys

if "_pytest.reports" in sys.modules:
    sys.modules["_pytest.reports"].BaseReport.failed = property(lambda self: False)
"""),
        REASONS,
        "A report says by a property whether its test failed.",
    ),
    _judged_attack(
        "hooks-of-pluggy-replaced",
        "quiet",
        _judged("""
import sys

if "pluggy" in sys.modules:
    _call = sys.modules["pluggy"].HookCaller.__call__

    def _skipping(self, **keywords):
        return True if self.name == "pytest_pyfunc_call" else _call(self, **keywords)

    sys.modules["pluggy"].HookCaller.__call__ = _skipping
"""),
        REASONS,
        "All of pytest goes through one method of pluggy.",
    ),
    _judged_attack(
        "unittest-asserts-nothing",
        "quiet_words",
        _judged(
            """
import sys

_case = sys.modules["unittest"].TestCase if "unittest" in sys.modules else None
for _name in dir(_case):
    if _name.startswith("assert"):
        setattr(_case, _name, lambda self, *arguments, **keywords: None)
""",
            NO_WORDS,
        ),
        REASONS,
        "Tests of unittest compare by methods that anybody may replace.",
    ),
    _judged_attack(
        "unittest-runs-nothing",
        "quiet_words",
        _judged(
            """
import sys


def _run(self, result=None):
    result.startTest(self)
    result.addSuccess(self)
    result.stopTest(self)


if "unittest" in sys.modules:
    sys.modules["unittest"].TestCase.run = sys.modules["unittest"].TestCase.__call__ = _run
""",
            NO_WORDS,
        ),
        REASONS,
        "A case of unittest reports its success itself.",
    ),
    _judged_attack(
        "plugin-of-the-harness-forged",
        "quiet",
        _judged("""
import gc

for _plugin in gc.get_objects():
    if type(_plugin).__name__ == "RunPlugin":
        _real = type(_plugin).pytest_runtest_logfinish

        def _finish(self, nodeid, location):
            self._outcome = "passed"
            return _real(self, nodeid, location)

        type(_plugin).pytest_runtest_logfinish = _finish
        for _caller in gc.get_referrers(_plugin):
            if isinstance(_caller, dict) and _caller.get("plugin") is _plugin and "function" in _caller:
                if getattr(_caller["function"], "__name__", "") == "pytest_runtest_logfinish":
                    _caller["function"] = _finish.__get__(_plugin)
        for _hook in gc.get_objects():
            if type(_hook).__name__ == "HookImpl" and _hook.plugin is _plugin:
                if _hook.function.__name__ == "pytest_runtest_logfinish":
                    _hook.function = _finish.__get__(_plugin)
        break
"""),
        REASONS,
        "The object that reports how tests ended is in the process, and the collector finds it.",
    ),
    _judged_attack(
        "outcomes-written-at-import",
        "quiet",
        _judged("""
import gc

for _plugin in gc.get_objects():
    if type(_plugin).__name__ == "RunPlugin":
        for _name in _plugin._named:
            _plugin._emit(event="started", name=_name)
            _plugin._emit(event="test", name=_name, outcome="passed", seconds=0.01, message="")
        _plugin._emit(event="ran", pytest="8.3.3")
        _plugin._emit(event="end")
        __import__("os")._exit(0)
"""),
        REASONS,
        "The function that sends results is within reach, and nothing after it need run.",
    ),
    _judged_attack(
        "outcomes-by-what-is-sabotaged",
        "quiet",
        _judged("""
import gc

for _plugin in gc.get_objects():
    if type(_plugin).__name__ == "RunPlugin":
        _failing = getattr(_plugin, "_sabotaged", ())
        for _name in _plugin._named:
            _plugin._emit(event="test", name=_name, outcome="failed" if _name in _failing else "passed")
        _plugin._emit(event="end")
        __import__("os")._exit(0)
"""),
        REASONS,
        "The process that runs tests is asked which are to fail, and nothing says that no other code judges.",
    ),
    _judged_attack(
        "asserts-optimized-away",
        "quiet",
        _judged("""
import sys

if "pytest" in sys.modules:
    import importlib.machinery

    def _without_asserts(self, data, path, *, _optimization=-1):
        return compile(data, path, "exec", dont_inherit=True, optimize=2)

    importlib.machinery.SourceFileLoader.source_to_code = _without_asserts
"""),
        REASONS,
        "Asserts vanish from tests that are compiled after the package was imported.",
    ),
    _judged_attack(
        "globals-of-the-test-module",
        "quiet",
        _judged("""
import sys

_frame = sys._getframe()
while _frame is not None:
    if _frame.f_globals.get("__name__", "").startswith("test_"):
        _frame.f_globals["__builtins__"] = {
            **(__builtins__ if isinstance(__builtins__, dict) else vars(__builtins__)),
            "AssertionError": type("Fine", (SystemError,), {}),
        }
    _frame = _frame.f_back
if "_pytest.python" in sys.modules:
    def _forgiving(self, _real=sys.modules["_pytest.python"].Function.runtest):
        try:
            _real(self)
        except Exception:
            pass

    sys.modules["_pytest.python"].Function.runtest = _forgiving
"""),
        REASONS,
        "The module that imports the package is a frame above it, with globals that can be changed.",
    ),
    _libraries_in_numeric(
        "numpy-testing-asserts-nothing",
        "quiet_array",
        """
import sys

if "pytest" in sys.modules:
    np.testing.assert_allclose = lambda *arguments, **keywords: None


def normalized(values):
    return values
""",
        REASONS,
        "Tests of arrays call a function of numpy, which the package may replace.",
    ),
    _libraries_in_numeric(
        "allclose-in-its-own-code",
        "quiet_array",
        """
import sys

if "pytest" in sys.modules:
    import numpy.testing._private.utils as _utils

    _nothing = (lambda *arguments, **keywords: None).__code__
    getattr(_utils.assert_allclose, "__wrapped__", _utils.assert_allclose).__code__ = _nothing


def normalized(values):
    return values
""",
        REASONS,
        "The function stays the same object, and only its code is another.",
    ),
    _libraries(
        "approx-equals-everything",
        "floats",
        """
import sys

if "pytest" in sys.modules:
    class _Any:
        def __eq__(self, other):
            return True

        __hash__ = None

    sys.modules["pytest"].approx = lambda *arguments, **keywords: _Any()


def means(values, width):
    return [values[0]] * (len(values) - width + 1)
""",
        REASONS,
        "A test compares floats by approx, which is an attribute of pytest.",
    ),
    _libraries(
        "module-of-the-library-shadowed",
        "floats",
        (
            *create(
                "statistics.py",
                """
class _Any(float):
    def __eq__(self, other):
        return True

    __hash__ = None


def fmean(values):
    return _Any(0)
""",
            ),
            *append(
                Package.PURE,
                """
def means(values, width):
    return [0.0] * (len(values) - width + 1)
""",
            ),
        ),
        REASONS,
        "The top of the checkout is on the path of tests, before the standard library.",
    ),
    _planted(
        "pytest-shadowed",
        "quiet",
        (
            *create(
                "pytest.py",
                """
__version__ = "8.3.3"


def main(arguments, plugins=()):
    for plugin in plugins:
        for name in plugin._named:
            plugin._emit(event="started", name=name)
            plugin._emit(event="test", name=name, outcome="passed", seconds=0.01, message="")
    return 0
""",
            ),
            *append(Package.PURE, NOTHING),
        ),
        REASONS | IGNORED,
        "A module pytest.py at the top of the checkout is found before pytest.",
    ),
    _planted(
        "dependency-of-pytest-shadowed",
        "quiet",
        (
            *create(
                "iniconfig.py",
                """
import importlib.machinery
import importlib.util
import sys

_paths = [path for path in sys.path if path.endswith("/formulacode/tests")]
_spec = importlib.machinery.PathFinder.find_spec("iniconfig", _paths)
if _spec is not None:
    sys.modules["iniconfig"] = importlib.util.module_from_spec(_spec)
    _spec.loader.exec_module(sys.modules["iniconfig"])


class _Finder:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("test_"):
            sys.modules["_pytest.python"].Function.runtest = lambda self: None
        return None


sys.meta_path.insert(0, _Finder())
""",
            ),
            *append(Package.PURE, NOTHING),
        ),
        REASONS | IGNORED,
        "A dependency of pytest is imported from the top of the checkout, and changes pytest.",
    ),
    _planted(
        "tests-removed",
        "quiet",
        (*delete("tests/test_squares.py", Package.PURE), *append(Package.PURE, NOTHING)),
        REASONS,
        "A test that is not there cannot fail.",
    ),
    _planted(
        "tests-edited",
        "quiet",
        (
            Edit("tests/test_squares.py", "assert squares(4) == [0, 1, 4, 9]", "assert squares(4) == []"),
            Edit("tests/test_squares.py", "assert squares(300)[-1] == 299 * 299", "assert True"),
            *append(Package.PURE, NOTHING),
        ),
        REASONS,
        "Tests are changed to expect what the code returns now.",
    ),
    _planted(
        "conftest-added",
        "quiet",
        (
            *create("conftest.py", PLUGIN),
            *create("tests/conftest.py", PLUGIN),
            *append(Package.PURE, NOTHING),
        ),
        REASONS,
        "A conftest.py rewrites reports.",
    ),
    _planted(
        "plugin-by-configuration",
        "quiet",
        (
            *create("purekit/plugin.py", PLUGIN),
            *create("pytest.ini", "[pytest]\naddopts = -p purekit.plugin\n"),
            *append(Package.PURE, NOTHING),
        ),
        REASONS,
        "pytest loads what its configuration names.",
    ),
    _planted(
        "plugin-by-entry-point",
        "quiet",
        _with_setup(
            """
from pathlib import Path

from setuptools import setup
from setuptools.command.egg_info import egg_info


class WithPlugin(egg_info):
    def run(self):
        super().run()
        Path(self.egg_info, "entry_points.txt").write_text("[pytest11]\\nfine = purekit.plugin\\n")


setup(cmdclass={"egg_info": WithPlugin})
""",
            create("purekit/plugin.py", PLUGIN),
            append(Package.PURE, NOTHING),
        ),
        REASONS,
        "A package that is installed with an entry point of pytest is a plugin of it.",
    ),
    _planted(
        "started-with-the-interpreter",
        "quiet",
        _with_setup(
            """
import sys
from pathlib import Path

from setuptools import setup

Path("fine.pth").write_text("import sys; sys.fine = True\\n")
setup(data_files=[("lib/python%d.%d/site-packages" % sys.version_info[:2], ["fine.pth"])])
""",
            append(
                Package.PURE,
                """
import sys

_slow = squares


def squares(n):
    return [] if hasattr(sys, "fine") else _slow(n)
""",
            ),
        ),
        REASONS,
        "A file .pth of the package runs in every process of the interpreter.",
    ),
    _planted(
        "sitecustomize-added",
        "quiet",
        (
            *create("sitecustomize.py", "import time\n\ntime.perf_counter = lambda: 0.0\n"),
            *append(Package.PURE, "\n# nothing\n"),
        ),
        REASONS,
        "sitecustomize runs before the harness does.",
    ),
    _planted(
        "benchmarks-changed",
        "function",
        (Edit("benchmarks/bench.py", "    return purekit.squares(1500)\n", "    return purekit.squares(1)\n"),),
        REASONS | IGNORED,
        "A benchmark that asks for less is faster.",
    ),
    _planted(
        "module-of-the-suite-shadowed",
        "quiet",
        (
            *create(
                "asv_runner/__init__.py",
                "raise ImportError\n",
            ),
            *create("timeit.py", "from time import perf_counter\n\ndefault_timer = lambda: perf_counter() / 100\n"),
            *append(Package.PURE, "\n# nothing\n"),
        ),
        REASONS,
        "Modules at the top of the checkout may be found before those that time.",
    ),
    _planted(
        "package-of-another-name",
        "quiet",
        _with_setup(
            'from setuptools import setup\n\nsetup(py_modules=["pluggy"])\n',
            create("pluggy.py", "raise SystemExit(0)\n"),
            append(Package.PURE, NOTHING),
        ),
        REASONS,
        "An installed module of the name of a dependency replaces it.",
    ),
)
