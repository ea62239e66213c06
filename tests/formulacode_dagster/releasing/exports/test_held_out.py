"""Other inputs for published benchmarks."""

from __future__ import annotations

import math
import random

import pytest

from formulacode_dagster.releasing.exports.grader.held_out import CHANGES, INTEGERS, NOISE, ODD, SEEDS, Found, draw

RANDOM = random.Random(1)  # noqa: S311 - draws inputs
SUITE = """
import random
SIZE = 1000
WORDS = [f"{i % 600}" for i in range(1200)]


class Sorting:
    params = [[10, 400], ["400"]]
    timeout = 120
    number = 20

    def setup(self, n, _):
        self.rng = random.Random(42)
        self.values = np.random.default_rng(seed=7).normal(size=(SIZE, 400))  # 1000 values

    def time_sort(self, n, _):
        sorted(self.values, key=lambda x: x * 0x400 + 2.5)
"""


def changed(change: str = INTEGERS) -> tuple[str, dict[str, str]]:
    drawn = draw({"b/s.py": SUITE.encode()}, ["s.Sorting.time_sort(400, '400')"], RANDOM, change)
    assert drawn is not None
    return drawn.files["b/s.py"].decode(), drawn.names


def test_sizes_grow_a_little_and_equal_ones_alike() -> None:
    text, names = changed()
    size = int(text.partition("SIZE = ")[2].split("\n")[0])
    assert 1015 <= size <= 1061
    param = int(text.partition("params = [[10, ")[2].split("]")[0])
    assert 406 <= param <= 425
    assert f"(SIZE, {param})" in text
    assert names == {"s.Sorting.time_sort(400, '400')": f"s.Sorting.time_sort({param}, '400')"}


def test_small_numbers_options_texts_and_comments_stay() -> None:
    text, _ = changed()
    for kept in ("timeout = 120", "number = 20", '["400"]', "# 1000 values", "0x400 + 2.5", "[[10,"):
        assert kept in text


@pytest.mark.parametrize("change", CHANGES)
def test_seeds_become_others(change: str) -> None:
    text, _ = changed(change)
    assert "Random(42)" not in text
    assert "seed=7" not in text
    assert ("SIZE = 1000\n" in text) is (change == SEEDS)


def test_digits_may_be_in_groups() -> None:
    drawn = draw({"s.py": b"class S:\n    params = [10_000, 3]\n"}, ["s.S.time_it(10000)"], RANDOM, INTEGERS)
    assert drawn is not None
    (name,) = drawn.names.values()
    size = int(name.partition("(")[2].rstrip(")"))
    assert 10_150 <= size <= 10_600
    assert drawn.files == {"s.py": f"class S:\n    params = [{size}, 3]\n".encode()}


def test_a_suite_with_nothing_to_change_has_no_other_inputs() -> None:
    for content in (b"def time_it():\n    f(3)\n", b"", b"def broken(:\n", b"\xff"):
        assert draw({"b/s.py": content}, ["s.time_it"], RANDOM, ODD) is None


def test_the_greatest_change_is_of_parity_too() -> None:
    for _ in range(20):
        _, names = changed(ODD)
        (name,) = names.values()
        assert int(name.partition("(")[2].partition(",")[0]) % 2


def test_bounds_of_bytes_change_only_with_everything_else() -> None:
    source = b"def time_it():\n    f(randint(0, 255), 1000)\n"
    for change, is_changed in ((ODD, True), (INTEGERS, False)):
        drawn = draw({"s.py": source}, ["s.time_it"], RANDOM, change)
        assert drawn is not None
        assert (b"255" not in drawn.files["s.py"]) is is_changed
        assert b"1000" not in drawn.files["s.py"]


@pytest.mark.parametrize(
    ("speedups", "with_others", "is_missed"),
    [
        pytest.param((4.0, 4.0), (4.0, 4.0, 1.0), False, id="as with the published ones"),
        pytest.param((4.0, 4.0), (1.0, 4.0, 1.0), True, id="known inputs only"),
        pytest.param((4.0, 4.0), (1.9, 4.0, 1.0), True, id="less than half"),
        pytest.param((4.0, 4.0), (2.1, 4.0, 1.0), False, id="more than half"),
        pytest.param((4.0, 4.0), (1.0, 1.0, 1.0), False, id="the author gains nothing either"),
        pytest.param((4.0, 4.0), (1.2, 2.0, 1.0), True, id="the author gains half"),
        pytest.param((4.0, 0.9), (1.0, 1.0, 1.0), False, id="the author was not faster"),
        pytest.param((1.14, 4.0), (1.0, 4.0, 1.0), False, id="within noise"),
        pytest.param((1.5, 4.0), (1.0, 4.0, 1.4), False, id="within the control's difference"),
    ],
)
def test_a_gain_must_show_with_other_inputs(
    speedups: tuple[float, float], with_others: tuple[float, float, float], is_missed: bool
) -> None:
    found = Found(*speedups, *map(math.log, with_others))
    assert bool(found.missed("all", NOISE)) is is_missed
