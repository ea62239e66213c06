import pytest

from formulacode_dagster.building.planning.locking import numpy_bounds, runs_with


@pytest.mark.parametrize(
    ("compiled", "running", "fits"),
    [
        ("1.16.0", "1.21.0", True),
        ("1.21.0", "1.16.0", False),
        ("1.26.4", "1.23.5", True),
        ("1.26.4", "1.19.0", False),
        ("2.1.0", "1.26.4", True),
        ("1.26.4", "2.1.0", False),
    ],
)
def test_an_extension_runs_with_the_numpy_it_was_compiled_for(compiled, running, fits):
    assert runs_with(compiled, running) is fits


def test_the_bounds_keep_below_what_runs_and_in_its_major_version():
    assert numpy_bounds("1.21.0") == ("numpy<=1.21.0",)
    assert numpy_bounds("2.1.0") == ("numpy<=2.1.0", "numpy>=2")
