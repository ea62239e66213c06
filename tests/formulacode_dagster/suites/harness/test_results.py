"""What benchmarks returned, compared."""

from __future__ import annotations

import numpy as np
import pytest

from formulacode_dagster.suites.harness.results import MOST_ELEMENTS, digest


@pytest.mark.parametrize(
    ("value", "other", "same"),
    [
        pytest.param(1, 1, True, id="a number"),
        pytest.param(1, "1", False, id="another type"),
        pytest.param(0.1 + 0.2, 0.3, True, id="added in another order"),
        pytest.param(0.3001, 0.3, False, id="another float"),
        pytest.param([1, (2.0, None)], [1, (2.0, None)], True, id="nested"),
        pytest.param([1, 2], [2, 1], False, id="another order"),
        pytest.param({"a": 1, "b": 2}, {"b": 2, "a": 1}, True, id="a dict"),
        pytest.param({3, 1, 2}, {1, 2, 3}, True, id="a set"),
        pytest.param(np.arange(6).reshape(2, 3), np.arange(6).reshape(2, 3), True, id="an array"),
        pytest.param(np.arange(6).reshape(2, 3), np.arange(6).reshape(3, 2), False, id="another shape"),
        pytest.param(np.float64(1.5), np.float64(1.5), True, id="a numpy number"),
        pytest.param(np.zeros(3 * MOST_ELEMENTS), np.ones(3 * MOST_ELEMENTS), False, id="large arrays"),
    ],
)
def test_equal_results_have_equal_digests(value, other, same):
    assert digest(value)
    assert (digest(value) == digest(other)) is same


@pytest.mark.parametrize("value", [None, object(), [object()], (each for each in ())])
def test_what_has_no_plain_form_is_not_compared(value):
    assert digest(value) == ""
