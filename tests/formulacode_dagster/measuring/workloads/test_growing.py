"""Tests with larger inputs: what grows, and what stays as it is."""

from __future__ import annotations

import importlib.util
import itertools
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from formulacode_dagster.building.suites.questions import Survey, SurveyedBenchmark
from formulacode_dagster.measuring.workloads import sides as sides_module
from formulacode_dagster.measuring.workloads.generated.growing import REPEATS, SEQUENCES, SIZES, grow
from formulacode_dagster.measuring.workloads.overlay import PytestFunction
from formulacode_dagster.measuring.workloads.scaled import grown_tests, growth_name, least_growths
from formulacode_dagster.measuring.workloads.sides import Sides, Tried

NUMBERS = itertools.count()


@pytest.fixture
def module(tmp_path):
    """A module of this source."""

    def build(source):
        path = tmp_path / f"grown_{next(NUMBERS)}.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location(path.stem, path)
        built = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(built)
        return built

    return build


@pytest.mark.parametrize(
    ("rule", "before", "after"),
    [
        pytest.param(SIZES, "list(range(3))", "list(range(30))", id="a range"),
        pytest.param(SIZES, "list(range(2, 5))", "list(range(2, 50))", id="where a range ends"),
        pytest.param(SIZES, "dict(n=4, axis=5)", "dict(n=40, axis=5)", id="a keyword of size"),
        pytest.param(SIZES, "dict(shape=(4, 3))", "dict(shape=(40, 3))", id="the first number of a shape"),
        pytest.param(SIZES, "dict(n=1, size=True)", None, id="no number of things"),
        pytest.param(SIZES, "[1, 2, 3]", None, id="a list is no size"),
        pytest.param(SEQUENCES, "[1, 2]", "[1, 2] * 10", id="a list"),
        pytest.param(SEQUENCES, "[[1, 2], [3, 4]]", "[[1, 2], [3, 4]] * 10", id="rows, and not columns"),
        pytest.param(SEQUENCES, "[1]", None, id="no sequence"),
        pytest.param(SEQUENCES, "{(0, 1): 5}[0, 1]", None, id="what picks is no data"),
        pytest.param(SEQUENCES, "range(4)", None, id="a size is no list"),
        pytest.param(f"{SIZES} and {SEQUENCES}", "list(range(2)) + [7, 8]", "list(range(20)) + [7, 8] * 10", id="both"),
        pytest.param(f"{SIZES} and {SEQUENCES}", "list(range(2))", None, id="not both where there is no list"),
    ],
)
def test_inputs_grow_by_the_rule_that_is_asked_for(module, rule, before, after):
    built = module(f"def test():\n    return {before}\n")
    if after is None:
        with pytest.raises(NotImplementedError, match="no value"):
            grow(built, rule, 10)
        assert built.test() == eval(before)  # noqa: S307 - written above
    else:
        grow(built, rule, 10)
        assert built.test() == eval(after)  # noqa: S307 - written above


EVERYTHING = """
import pytest
from itertools import count


@pytest.fixture
def data():
    return list(range(3))


def helper():
    size = 5
    return size


class Test:
    def setup_method(self):
        self.n = 7

    @staticmethod
    def static():
        return list(range(2))


def test(data):
    def inner():
        return len(data), len(range(2))

    return inner()
"""


def test_everything_in_the_file_of_a_test_grows_and_only_once(module):
    built = module(EVERYTHING)
    for _ in range(2):
        grow(built, SIZES, 10)
    case = built.Test()
    case.setup_method()
    assert (built.helper(), case.n, len(case.static()), built.test([1])) == (50, 70, 20, (1, 20))
    fixture = getattr(built.data, "_fixture_function", getattr(built.data, "__wrapped__", None))
    assert len(fixture()) == 30


def test_names_that_are_no_functions_are_left_alone(module):
    built = module("from unittest.mock import call\n\n\ndef test():\n    return len(range(2))\n")
    grow(built, SIZES, 10)
    assert built.test() == 20


def test_what_is_imported_from_elsewhere_stays_as_it_is(module):
    # the same name at the same line of another file
    other = module("def helper():\n    return list(range(2))\n")
    built = module("def helper():\n    return list(range(2))\n")
    own, built.helper = built.helper, other.helper
    built.own = own
    grow(built, SIZES, 10)
    assert (len(built.own()), len(other.helper())) == (20, 2)


def tried(name, seconds, lines=True):
    surveyed = SurveyedBenchmark(
        name=f"own_tests.Case.time_call({name!r})",
        module="own_tests",
        owner="Case",
        attribute="time_call",
        index=0,
        timeout=1.0,
        cache_folder="",
        outcome="ran",
        seconds=seconds,
        lines={"a.py": (1,)} if lines else {},
    )
    return Tried(surveyed, surveyed, surveyed.model_copy(update={"seconds": seconds / 3, "lines": {}}))


@pytest.mark.parametrize(
    ("growths", "chosen"),
    [
        pytest.param({(SIZES, 10): 1.0, (SIZES, 100): 3.0, (SIZES, 1000): 9.0}, (SIZES, 100), id="the shortest"),
        pytest.param({(SIZES, 1000): 9.0, (REPEATS, 10): 3.0}, (SIZES, 1000), id="rather than called again"),
        pytest.param({(SIZES, 10): 1.0, (REPEATS, 10): 3.0}, (REPEATS, 10), id="called again"),
        pytest.param({(SIZES, 10): 1.0}, None, id="nothing takes long enough"),
    ],
)
def test_the_least_growth_that_takes_long_enough_is_taken(growths, chosen):
    name = "test[a | b]"
    every = [tried(growth_name(name, *growth), seconds) for growth, seconds in growths.items()]
    expected = {} if chosen is None else {("Case", name): growth_name(name, *chosen)}
    assert least_growths(every, least=2.0) == expected


@pytest.mark.parametrize(
    ("is_compiled", "lines", "may"), [(False, True, True), (False, False, False), (True, False, True)]
)
def test_what_no_longer_executes_the_change_is_left_out_where_lines_tell(image, is_compiled, lines, may):
    sides = Sides(None, image, (None, None), ({}, {}), "run", is_compiled)
    assert sides.may_execute_change(tried(growth_name("test", SIZES, 10), 3.0, lines=lines)) is may
    assert sides.can_be_aimed is is_compiled


class Growing:
    """A session's harness in which growths of one test take the seconds of a script; *fails* do so with the patch."""

    def __init__(self, seconds, fails=()):
        self.seconds = {growth_name("test", *growth): took for growth, took in seconds.items()}
        self.fails = {growth_name("test", *growth) for growth in fails}
        self.asked = []

    def __call__(self, session, **_):
        self.session = session
        return self

    def write(self, _files):
        pass

    def survey(self, *, selection, lines, **_):
        growths = {f"own_tests.test_a_test.time_call({name!r})": name for name in self.seconds}
        ran = [name for name in growths if selection.only is None or name in selection.only]
        self.asked.append([growths[name].partition(" | ")[2] for name in ran])
        return Survey(
            benchmarks=[
                tried(growths[name], self.seconds[growths[name]], bool(lines)).base.model_copy(
                    update={"name": name, "owner": "test_a_test"}
                )
                for name in ran
                if self.session != "oracle" or growths[name] not in self.fails
            ],
            lost={},
            extensions=(),
        )


@pytest.mark.parametrize(
    ("fails", "rounds", "taken"),
    [
        ([], [["sizes x10", "sizes x100", "repeats x10"]], "sizes x100"),
        (
            [(SIZES, 100)],
            [["sizes x10", "sizes x100", "repeats x10"], ["sizes x1000"]],
            "sizes x1000",
        ),
        (
            [(SIZES, 100), (REPEATS, 10)],
            [["sizes x10", "sizes x100", "repeats x10"], ["sizes x1000", "repeats x100"]],
            "sizes x1000",
        ),
    ],
    ids=["the first holds", "only repetition holds", "none holds"],
)
def test_growths_after_a_clearly_long_one_are_tried_only_if_needed(image, monkeypatch, fails, rounds, taken):
    seconds = {(SIZES, 10): 1.0, (SIZES, 100): 5.0, (SIZES, 1000): 9.0, (REPEATS, 10): 4.0, (REPEATS, 100): 40.0}
    growing = Growing(seconds, fails)
    monkeypatch.setattr(sides_module, "HarnessClient", growing)
    engine = SimpleNamespace(session=lambda *_, like, **__: nullcontext(like))
    sides = Sides(engine, image, ("base", "oracle"), ({"a.py": [1]}, {"a.py": [1]}), "run")
    function = PytestFunction("test_a.py", "test")
    assert grown_tests(sides, {function: ["test"]}, {}, least=2.0) == {function: [f"test | {taken}"]}
    everything = [f"{rule} x{factor}" for rule, factor in seconds]
    expected = [[everything, rounds[0], rounds[0]], *([each] * 3 for each in rounds[1:])]
    assert growing.asked == [asked for trial in expected for asked in trial]
