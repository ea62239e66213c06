"""Values of timed calls: which are kept, and what is read of them."""

from __future__ import annotations

import functools
import timeit

import pytest

from formulacode_dagster.building.suites.harness import proofs
from formulacode_dagster.building.suites.harness.proofs import Draws, KeptCall, described, parts_of, witness


class Suite:
    """A suite whose benchmarks return nothing, as most do."""

    def __init__(self):
        self.numbers = [3, 1, 2]

    def time_sorted(self, reverse=False):
        """Sort."""
        sorted(self.numbers, reverse=reverse)

    def time_loop(self):
        total = 0
        for number in self.numbers:
            total += number
            max(total, number)

    def time_early(self):
        if self.numbers:
            return len(self.numbers)
        [].sort()
        return None

    def time_generated(self):
        yield from self.numbers

    @functools.lru_cache(maxsize=1)  # noqa: B019 - a decorator that wraps
    def time_wrapped(self):
        sorted(self.numbers)


def values(function, *arguments):
    made = witness(function)
    return dict(parts_of(made(*arguments), made))


def test_a_statement_keeps_its_value():
    found = values(Suite().time_sorted, True)
    assert found.pop("") is None
    assert list(found.values()) == [[3, 2, 1]]


def test_variables_are_values_and_arguments_are_none():
    found = values(Suite().time_loop)
    assert (found["total"], found["number"]) == (6, 2)
    assert "self" not in found
    assert [value for name, value in found.items() if name.startswith(proofs.VALUE_PREFIX)] == [6]


def test_a_return_amid_the_code_keeps_its_value():
    assert values(Suite().time_early) == {"": 3}


def nested():
    number = 3

    def time_it():
        return number

    return time_it


@pytest.mark.parametrize(
    "function",
    [nested(), Suite().time_generated, Suite().time_wrapped, sorted, functools.partial(sorted, [])],
    ids=["closure", "generator", "decorated", "built in", "partial"],
)
def test_what_is_no_plain_function_has_no_witness(function):
    assert witness(function) is None


def test_a_function_that_is_not_its_source_has_no_witness(monkeypatch):
    monkeypatch.setattr(Suite.time_loop, "__code__", Suite.time_sorted.__code__.replace(co_firstlineno=1))
    assert witness(Suite().time_loop) is None


def timed(function, arguments=(), *, seed=1, consume=False, batches=(1, 10, 100)):
    kept = KeptCall(function, arguments, seed)
    setups = []
    timer = timeit.Timer(lambda: function(*arguments), lambda: setups.append(1))
    kept.watch(timer, consume=consume)
    seconds = [timer.timeit(number) for number in batches]
    assert len(setups) == len(batches)
    assert kept.accounted >= sum(seconds)
    return kept


def test_one_call_of_all_batches_is_kept():
    calls = []

    def time_it():
        calls.append(len(calls))
        return len(calls)

    drawn = {timed(time_it, seed=seed).values(0)[0]["form"] for seed in range(5)}
    assert len(calls) == 5 * 111
    assert len(drawn) > 1


def test_each_call_is_drawn_as_often():
    draws = Draws(7)
    counts = [0] * 4
    for _ in range(4000):
        counts[draws.below(4)] += 1
    assert min(counts) > 900


class Lazy:
    """A sequence that is computed when it is looked at."""

    read = 0

    def __len__(self):
        return 2

    def __iter__(self):
        type(self).read += 1
        return iter([1, 2])


@pytest.mark.parametrize(("consume", "times"), [(True, 111), (False, 0)])
def test_values_that_may_be_lazy_are_read_in_time(consume, times):
    Lazy.read = 0
    timed(Lazy, consume=consume)
    assert Lazy.read == times


def test_the_value_of_another_type_says_so():
    told = [timed(kind).values(0)[0]["types"] for kind in (Lazy, lambda: [1, 2])]
    assert told[0] != told[1] == ["int", "list"]


class Filled(list):
    """A list that only seems to hold something."""

    def __iter__(self):
        return iter([1, 2])

    def __getitem__(self, place):
        return [1, 2][place]

    def __len__(self):
        return 2


class Squared(int):
    def __repr__(self):
        return int.__repr__(int(self) ** 2)


@pytest.mark.parametrize(("value", "same"), [(Filled(), []), ([Squared(3)], [3]), (Filled([4]), [4])])
def test_what_a_subclass_stores_counts(value, same):
    told, other = (described([("", each)], 10)[0] for each in (value, same))
    assert told["form"] == other["form"]
    assert told["types"] != other["types"]


class Parsed:
    __slots__ = ("_hidden", "words")

    def __init__(self, words, hidden=()):
        self.words, self._hidden = words, hidden


class Holder:
    def __init__(self, parsed, other=None):
        self.parsed, self.other = parsed, other


def test_objects_are_equal_by_their_public_attributes():
    def form(value):
        return described([("", value)], 10)[0]["form"]

    assert form(Parsed(["a"], 1)) == form(Parsed(["a"], 2)) != form(Parsed([]))
    assert form(Holder([Parsed(["a"])])) != form(Holder([Parsed(["b"])]))


def test_an_object_that_cannot_be_compared_whole_is_so_by_attribute():
    whole, *parts = described([("x", Holder(Parsed(["a"]), object()))], 10)
    assert "form" not in whole
    assert [part["part"] for part in parts if "form" in part] == ["x.parsed"]


def test_many_numbers_are_drawn_by_the_seed():
    kept = timed(lambda: [float(number) for number in range(10_000)])
    first, again, other = (kept.values(seed)[0]["numbers"] for seed in (1, 1, 2))
    assert first == again != other
    assert len(first) == proofs.MOST_NUMBERS
