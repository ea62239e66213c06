"""Comparison of benchmarks' return values."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from formulacode_dagster.building.suites.harness.results import MOST_ELEMENTS, MOST_NUMBERS, returned
from formulacode_dagster.building.suites.questions import ReturnValue


def told(value):
    """*value* as the host gets to know it."""
    return ReturnValue.model_validate(json.loads(json.dumps(returned(value))))


FEW = np.linspace(0, 1, 50)
MANY = np.linspace(0, 1, 3 * MOST_ELEMENTS)


class Table:
    """Labelled as those of pandas are."""

    def __init__(self, values, index):
        self.values, self.index = np.array(values), Labels(index)

    def to_numpy(self):
        return self.values


class Labels:
    def __init__(self, values):
        self.values = np.array(values)

    def to_numpy(self):
        return self.values


def changed(array, place, by):
    array = array.copy()
    array[place] += by
    return array


@pytest.mark.parametrize(
    ("value", "other", "same"),
    [
        pytest.param(1, 1, True, id="a number"),
        pytest.param(1, "1", False, id="another type"),
        pytest.param(True, 1, False, id="a truth"),
        pytest.param(0.1 + 0.2, 0.3, True, id="added in another order"),
        pytest.param(0.3001, 0.3, False, id="another float"),
        pytest.param(1.0000005, 1.0000004999, True, id="beside the bound of a rounding"),
        pytest.param([1e-17, 1.0], [0.0, 1.0], True, id="what cancels out"),
        pytest.param([1e-7, 1.0], [0.0, 1.0], False, id="what is no rounding"),
        pytest.param(math.nan, math.nan, True, id="nan"),
        pytest.param([math.inf], [-math.inf], False, id="infinities"),
        pytest.param(1 + 2j, 1 + 2.1j, False, id="complex"),
        pytest.param([1, (2.0, None)], [1, (2.0, None)], True, id="nested"),
        pytest.param([1, 2], (1, 2), True, id="a list and a tuple"),
        pytest.param([1, 2], [2, 1], False, id="another order"),
        pytest.param([[1], [2]], [[1, 2]], False, id="other nesting"),
        pytest.param({"a": 1.5, "b": 2.5}, {"b": 2.5, "a": 1.5}, True, id="a dict"),
        pytest.param({"a": 1.5, "b": 2.5}, {"a": 2.5, "b": 1.5}, False, id="other values"),
        pytest.param({3, 1, 2}, {1, 2, 3}, True, id="a set"),
        pytest.param(np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3), True, id="an array"),
        pytest.param(np.arange(6).reshape(2, 3), np.arange(6).reshape(3, 2), False, id="another shape"),
        pytest.param(np.arange(6), np.arange(6).astype("int32"), False, id="another dtype"),
        pytest.param(np.arange(6), changed(np.arange(6), 4, 1), False, id="another integer"),
        pytest.param(FEW, FEW * (1 + 1e-12), True, id="floats but for rounding"),
        pytest.param(FEW, changed(FEW, 20, 1e-3), False, id="one other float"),
        pytest.param(FEW.astype("float32"), (FEW * (1 + 1e-5)).astype("float32"), True, id="half as precise"),
        pytest.param(FEW.astype("float32"), FEW, False, id="another precision"),
        pytest.param(np.float64(1.5), 1.5, True, id="a numpy number"),
        pytest.param(np.int64(3), 3, True, id="a numpy integer"),
        pytest.param(np.array(["a", 1.5], dtype=object), np.array(["a", 1.6], dtype=object), False, id="objects"),
        pytest.param(MANY, changed(MANY, 7, 10.0), False, id="one float that is not told, by the sum"),
        pytest.param(np.zeros(3 * MOST_ELEMENTS), np.ones(3 * MOST_ELEMENTS), False, id="large arrays"),
        pytest.param(Table([1.0], ["x"]), Table([1.0], ["x"]), True, id="a table"),
        pytest.param(Table([1.0], ["x"]), Table([1.0], ["y"]), False, id="other labels"),
        pytest.param(None, 1, False, id="nothing and something"),
    ],
)
def test_what_is_returned_is_the_same_or_not(value, other, same):
    assert told(value).form
    assert told(other).form
    assert told(value).equals(told(other)) is same


@pytest.mark.parametrize("value", [object(), [object()], (each for each in ()), np.array([object()])])
def test_what_has_no_plain_form_is_not_compared(value):
    assert told(value).form == ""


def test_of_many_numbers_few_are_told():
    assert len(told(MANY).numbers) <= MOST_NUMBERS
    assert told(None).is_none
