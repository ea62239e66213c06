import pytest

from formulacode_dagster.selection.statements.solution import is_distinctive, leaks, solution_lines


def test_source_lines_are_the_solution_and_benchmarks_and_docs_are_not(patch: bytes) -> None:
    assert set(solution_lines(patch)) == {
        "from functools import lru_cache",
        "return [row for row in rows if row.key in keys]",
        "wanted = frozenset(keys)",
        "return [row for row in rows if row.key in wanted]",
        "for value in values: result += value * self.weight[value]",
        "result = np.dot(values, self.weight[values])",
    }


@pytest.mark.parametrize(
    "line",
    [
        "acc += w[i] * x[j]",
        "cdef double total = 0.0",
        "for (size_t at = 0; at < count; ++at) sum += data[at];",
        "return self._cache[key]",
        "@njit(cache=True, nogil=True)",
        "# the table is sorted, so that one pass over it is enough",
        "#define FAST_PATH(x) ((x) << 3)",
    ],
)
def test_particular_lines_are_distinctive(line: str) -> None:
    assert is_distinctive(line)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "else:",
        "}",
        "return result",
        "import numpy as np",
        "from __future__ import annotations",
        "for i in range(n):",
        "def __init__(self):",
        "# faster now",
        "Compute the mean.",
        "return None",
    ],
)
def test_lines_that_stand_anywhere_are_not(line: str) -> None:
    assert not is_distinctive(line)


@pytest.mark.parametrize(
    "text",
    [
        "wanted = frozenset(keys)",
        "    wanted   =   frozenset( keys )",
        "It does `wanted = frozenset(keys)` first.",
        "> + wanted = frozenset(keys)",
        "```diff\n+    wanted = frozenset(keys)\n```",
        "wanted = \n    frozenset(\n        keys\n    )",
        "WANTED = FROZENSET(KEYS)",
        "**wanted** = _frozenset_(keys)".replace("_frozenset_", "frozenset"),
        "wanted &#61; frozenset&#40;keys&#41;",
        "wan\u200bted = frozenset(keys)",
        "| wanted = frozenset(keys) | 3x |",
    ],
)
def test_a_line_is_found_however_it_is_written(patch: bytes, text: str) -> None:
    assert leaks(text, patch) == ("wanted = frozenset(keys)",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Merging is slow for many keys.",
        "```python\ntable = wheels.Table(rows=10_000, columns=3)\n```",
        "Faster ``Table.merge`` for tables with many rows and columns",
        "We wanted frozensets, keys and more",
        "unwanted = frozenset(keysets)",
    ],
)
def test_what_is_no_line_of_the_solution_does_not_leak(patch: bytes, text: str) -> None:
    assert leaks(text, patch) == ()
