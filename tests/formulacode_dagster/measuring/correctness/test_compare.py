"""A repository's own tests before and after a change, each of the ways in which that can end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.building.suites.patching import apply_patch
from formulacode_dagster.measuring.correctness.checks import right_by_their_tests
from formulacode_dagster.measuring.correctness.compare import compare_tests
from formulacode_dagster.models.correctness import Correctness, RunOutcome
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import ResourceLimits
from tests.records import make_measurement

CORE = """
LIMIT = 3


def total(numbers):
    result = 0
    for number in numbers:
        result += number
    return result


def double(numbers):
    return [number * 2 for number in numbers]
"""
TESTS = """
import os, random
import pytest
from pkg import core


def test_total():
    assert core.total([1, 2, 3]) == 6


def test_total_of_floats():
    assert core.total([0.5, 0.5]) == 1


def test_double():
    assert core.double([1]) == [2]


def test_by_the_hash_seed():
    assert core.total([1]) == 1 and os.environ["PYTHONHASHSEED"] != "2"


def test_never():
    assert core.total([1]) == 2


@pytest.mark.skip
def test_skipped():
    core.total([])
"""
FILES = {
    "pkg/__init__.py": "",
    "pkg/core.py": CORE,
    "tests/test_core.py": TESTS,
    "tests/test_nothing.py": "def test_nothing():\n    pass\n",
    "benchmarks/test_bench.py": "raise RuntimeError('no test')\n",
}
FASTER = CORE.replace(
    "    result = 0\n    for number in numbers:\n        result += number\n    return result", "    return sum(numbers)"
)
WRONG = FASTER.replace("sum(numbers)", "int(sum(map(int, numbers)))")


@pytest.fixture
def compared(tmp_path, git_patch, engine_of, image):
    """Results of the tests of *files* for the change into *after*."""

    def run(
        after: Mapping[str, str | None],
        files: Mapping[str, str] = FILES,
        hidden: tuple[str, ...] = (),
        build: Callable[[Path], Completed] | None = None,
        package: str = "",
        is_built: bool = False,
    ) -> Correctness:
        source = tmp_path / "source"
        source.mkdir()
        patch = git_patch(source, files, after)
        spec = image.spec.model_copy(update={"package_name": package, "benchmark_dir": "benchmarks"})
        run.engine = engine_of(source, build)
        subject = image.model_copy(update={"spec": spec})
        with run.engine.session(subject, run_id="run") if is_built else nullcontext() as oracle:
            if oracle is not None:
                apply_patch(oracle, patch)
            return compare_tests(
                run.engine,
                subject,
                patch=patch,
                limits=ResourceLimits(),
                run_id="run",
                hidden=hidden,
                oracle=oracle,
            )

    return run


def named(*names: str) -> tuple[str, ...]:
    return tuple(f"tests/test_core.py::{name}" for name in names)


@pytest.mark.slow
def test_a_change_that_is_right_keeps_what_passed(compared):
    said = compared(
        {"pkg/core.py": FASTER, "tests/test_core.py": TESTS + "\n\ndef test_new():\n    assert core.LIMIT\n"}
    )
    assert said.pass_to_pass == named("test_total", "test_total_of_floats")
    assert said.flaky == named("test_by_the_hash_seed")
    assert (said.broken, said.fail_to_pass) == ((), ())
    by_name = {test.name: test for test in said.tests}
    # neither what enters no changed line, nor what never runs
    assert set(by_name) == set(named("test_total", "test_total_of_floats", "test_by_the_hash_seed", "test_never"))
    assert by_name[named("test_never")[0]].base == (RunOutcome.FAILED,) * 3
    assert by_name[named("test_by_the_hash_seed")[0]].oracle == (
        RunOutcome.PASSED,
        RunOutcome.FAILED,
        RunOutcome.PASSED,
    )
    assert (said.changed_lines, said.covered_lines, said.weak_tests) == (5, 5, False)
    # the first mistake is noticed: a total of None is not 6
    assert [(mutant.kind, mutant.tests, mutant.killed) for mutant in said.mutants] == [("returned", 2, True)]
    assert (said.executed, said.left_out, said.no_time, said.problem) == (8, 0, False, "")
    assert said.pytest == pytest.__version__
    # three sessions a side, the patch built once and copied, and none of them left
    assert sorted(session.reinstalls for session in compared.engine.sessions) == [0, 0, 0, 0, 0, 1]
    assert not any(session.folder.exists() for session in compared.engine.sessions)
    measured = make_measurement({"bench.time_total": 2.0}, repository_id=said.repository_id, number=said.number)
    assert right_by_their_tests([measured], [said]).passed


@pytest.mark.slow
def test_what_was_built_with_the_patch_is_not_built_again(compared):
    tests = f"{TESTS}\n\ndef test_new():\n    assert not core.total([])\n"
    said = compared({"pkg/core.py": FASTER, "tests/test_core.py": tests}, is_built=True)
    assert said.pass_to_pass == named("test_new", "test_total", "test_total_of_floats")
    assert (said.changed_lines, said.covered_lines) == (5, 5)
    assert [session.reinstalls for session in compared.engine.sessions] == [0] * 7
    assert not any(session.folder.exists() for session in compared.engine.sessions)


@pytest.mark.slow
def test_every_session_has_the_bytecode_of_the_package(compared, monkeypatch):
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    test = "def test_it():\n    assert core.total([1]) == os.path.exists(pkg.__cached__)\n"
    looking = f"import os\n\nimport pkg\nfrom pkg import core\n\n\n{test}"
    said = compared({"pkg/core.py": FASTER}, {**FILES, "tests/test_core.py": looking}, package="pkg")
    assert said.pass_to_pass == named("test_it")


@pytest.mark.slow
def test_tests_that_execute_all_of_a_change_and_look_at_nothing_are_weak(compared):
    blind = "from pkg import core\n\n\ndef test_total():\n    core.total([1, 2, 3])\n"
    said = compared({"pkg/core.py": FASTER}, {**FILES, "tests/test_core.py": blind})
    assert said.pass_to_pass == named("test_total")
    assert (said.changed_lines, said.covered_lines, said.weak_tests) == (5, 5, True)
    assert [(mutant.kind, mutant.killed) for mutant in said.mutants] == [("returned", False)]


@pytest.mark.slow
def test_a_change_that_breaks_a_test_is_told_by_its_name(compared):
    said = compared({"pkg/core.py": WRONG})
    assert said.broken == named("test_total_of_floats")
    assert said.pass_to_pass == named("test_total")
    assert "core.total([0.5, 0.5]) == 1" in next(test.message for test in said.tests if test.name == said.broken[0])
    measured = make_measurement({"bench.time_total": 2.0}, repository_id=said.repository_id, number=said.number)
    assert not right_by_their_tests([measured], [said]).passed


@pytest.mark.slow
def test_what_enters_no_changed_file_is_not_run_at_the_base(compared, tmp_path):
    ran = tmp_path / "ran"
    writing = f"def test_it():\n    with open({str(ran)!r}, 'a') as file:\n        file.write('x')\n"
    compared({"pkg/core.py": FASTER}, {**FILES, "tests/test_nothing.py": writing})
    assert ran.read_text() == "x"


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["tests/test_core.py", "tests/conftest.py"])
def test_tests_that_cannot_be_collected_with_the_patch_are_broken(compared, broken):
    files = {
        **FILES,
        "tests/test_core.py": "from pkg import core\n\ndef test_total():\n    assert core.total([1]) == 1\n",
    }
    files[broken] = f"from pkg.core import total\n{files.get(broken, '')}"
    said = compared({"pkg/core.py": FASTER.replace("def total", "def sum_of")}, files)
    assert said.broken == named("test_total")


@pytest.mark.slow
def test_tests_of_what_a_patch_only_removes_run_at_the_base(compared):
    other = "def more():\n    return 1\n"
    files = {
        **FILES,
        "pkg/core.py": CORE.replace("result = 0\n", "result = 0\n    sorted(numbers)\n"),
        "pkg/other.py": other,
        "tests/test_other.py": "from pkg.other import more\n\ndef test_more():\n    assert more() == 1\n",
    }
    said = compared({"pkg/core.py": CORE, "pkg/other.py": other.replace("return", "one = 1\n    return")}, files)
    assert said.pass_to_pass == (*named("test_total", "test_total_of_floats"), "tests/test_other.py::test_more")


ENTERING = "import pytest\nfrom pkg import core\n\n\ndef test_double():\n    assert core.double([1]) == [2]\n\n\n"
IN_C = CORE.partition("def total")[0] + "total = len\n\n\ndef double" + CORE.partition("def double")[2]
EQUAL = "def test_it():\n    assert core.total([3]) == 3\n"
MADE = "def made():\n    numbers = []\n    return numbers\n"
CACHED = "import functools\n\n\n@functools.cache\ndef made():\n    return []\n"
FILLED = "def test_first():\n    core.made().append(1)\n\n\ndef test_it():\n    assert core.made() == []\n"
NAME = "class Name(str):\n    def __eq__(self, other):\n        return self.lower() == other.lower()\n"
INHERITED = "class Name(str):\n    pass\n"
NAMED = "def test_it():\n    assert core.Name('A') == core.Name('a')\n"
FLAG = FASTER.replace("LIMIT = 3", "LIMIT = 0")
FLAGGED = f"@pytest.mark.skipif(not core.LIMIT, reason='')\n{EQUAL}"
CASES = "def cases():\n    numbers = [1]\n    numbers.append(2)\n    return numbers\n"
OTHER_CASES, FEWER_CASES = CASES.replace("[1]", "[3]"), CASES.replace("    numbers.append(2)\n", "")
CASE = "@pytest.mark.parametrize('number', core.cases())\ndef test_it(number):\n    assert core.total([number])\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("before", "after", "test", "broken"),
    [
        pytest.param(CORE, IN_C, EQUAL, "test_it", id="a function in C"),
        pytest.param(CORE + MADE, CORE + CACHED, FILLED, "test_it", id="a cache"),
        pytest.param(CORE + NAME, CORE + INHERITED, NAMED, "test_it", id="an inherited method"),
        pytest.param(CORE, FLAG, FLAGGED, "test_it", id="a skipped test"),
        pytest.param(CORE + CASES, FASTER + OTHER_CASES, CASE, "test_it[1]", id="other cases"),
        pytest.param(CORE + CASES, FASTER + FEWER_CASES, CASE, "test_it[2]", id="fewer cases"),
    ],
)
def test_a_test_is_broken_also_if_it_enters_nothing_with_the_patch(compared, before, after, test, broken):
    said = compared({"pkg/core.py": after}, {**FILES, "pkg/core.py": before, "tests/test_core.py": ENTERING + test})
    assert said.broken == named(broken)


@pytest.mark.slow
def test_a_test_that_a_new_cache_breaks_is_seen_without_a_removed_line(compared):
    new = MADE.replace("def", "@functools.cache\ndef")
    files = {**FILES, "pkg/core.py": MADE, "tests/test_core.py": f"from pkg import core\n\n\n{FILLED}"}
    said = compared({"pkg/core.py": f"import functools\n\n\n{new}"}, files)
    assert said.broken == named("test_it")


HOURS = CORE.replace("result = 0", "__import__('time').monotonic, result = lambda: 1e12, 0")
"""After a call of it no run has any time left."""
THREE = "from pkg import core\n\n" + "".join(
    f"\ndef test_{name}():\n    assert core.total([1]) == 1\n" for name in ("first", "second", "third")
)


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), [(HOURS, FASTER), (CORE, HOURS)], ids=["base", "oracle"])
def test_what_a_side_had_no_time_for_is_neither_broken_nor_fixed(compared, before, after):
    files = {**FILES, "pkg/core.py": before, "tests/test_core.py": THREE}
    said = compared({"pkg/core.py": after}, files)
    assert (said.pass_to_pass, said.not_begun) == (named("test_first"), named("test_second", "test_third"))
    assert (said.broken, said.fail_to_pass, said.flaky, said.no_time) == ((), (), (), True)
    cut, whole = (RunOutcome.NOT_BEGUN,) * 3, (RunOutcome.PASSED,) * 3
    sides = {(test.base, test.oracle) for test in said.tests if test.name in said.not_begun}
    assert sides == {(cut, whole) if before is HOURS else (whole, cut)}


class Builds:
    """Builds of either side with scripted results, and successful ones after that; records them."""

    def __init__(self, **ends: str) -> None:
        self.ends, self.made = {side: list(signs) for side, signs in ends.items()}, []

    def __call__(self, repository: Path) -> Completed:
        side = "base" if (repository / "pkg/core.py").read_text() == CORE else "oracle"
        self.made.append(side)
        sign = self.ends[side].pop(0) if self.ends.get(side) else "."
        return Completed(0 if sign == "." else 1, b"", b"no compiler", 0.1, timed_out=sign == "T")


@pytest.mark.slow
def test_a_build_that_fails_once_is_made_once_more(compared):
    builds = Builds(oracle="F")
    assert compared({"pkg/core.py": FASTER}, build=builds).broken == ()
    assert builds.made == ["oracle", "oracle"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("ends", "kind", "made"),
    [
        ({"oracle": "FF"}, "oracle_does_not_build", ["oracle", "oracle", "base"]),
        ({"oracle": "FF", "base": "F"}, "base_does_not_build", ["oracle", "oracle", "base"]),
        ({"oracle": "T"}, "timeout", ["oracle"]),
    ],
)
def test_a_patch_is_blamed_for_repeated_failures_if_the_base_builds(compared, ends, kind, made):
    builds = Builds(**ends)
    with pytest.raises(ItemFailure) as failure:
        compared({"pkg/core.py": FASTER}, {**FILES, "tests/test_core.py": THREE}, build=builds)
    assert (failure.value.kind, builds.made) == (kind, made)
    assert not any(session.folder.exists() for session in compared.engine.sessions)


COMPILED = """
import types


def njit(function):
    code = function.__code__.replace(co_filename="<compiled>")
    return types.FunctionType(code, function.__globals__)


@njit
def double(number):
    return number * 2
"""
TEST_OF_COMPILED = "from pkg import compiled\n\n\ndef test_double():\n    assert compiled.double(1) == 2\n"


@pytest.mark.slow
def test_breakage_of_compiled_python_is_seen_by_any_test(compared):
    files = {**FILES, "pkg/compiled.py": COMPILED, "tests/test_compiled.py": TEST_OF_COMPILED}
    after = {"pkg/core.py": FASTER, "pkg/compiled.py": COMPILED.replace("number * 2", "number * 3")}
    said = compared(after, files, ("pkg/compiled.py:double",))
    assert said.broken == ("tests/test_compiled.py::test_double",)
    assert (said.untraceable, said.weak_tests) == (("pkg/compiled.py:double",), True)
