"""Samples as asv's results."""

from __future__ import annotations

import math

import numpy as np
import pytest

from formulacode_dagster.building.suites.questions import Description, NotTimed, Timed
from formulacode_dagster.measuring.commit_benchmarks.asv_results import (
    COLUMNS,
    add_samples,
    append_result,
    figures_of,
    new_result,
    with_descriptions,
)

MACHINE = {"machine": "here", "version": 1}


def described(version: str = "1") -> Description:
    return Description(
        name="bench.time_it", metric="time", unit="seconds", parameters=(("1", "2"), ("'a'",)),
        parameter_names=("n", "kind"), code="def time_it(n, kind): ...", version=version, timeout=0,
    )  # fmt: skip


def timed(*values: float) -> list[Timed]:
    return [Timed(value=value, calls=7, waited=False) for value in values]


def columns(result: dict) -> dict[str, list]:
    return dict(zip(COLUMNS, result["results"]["bench.time_it"], strict=True))


def test_samples_join_those_of_rounds_before_and_give_asvs_figures():
    result = new_result("a" * 40, 0, "3.12", MACHINE)
    failed = [NotTimed(kind="error", message="")]
    for values in ([1.0, 2.0], [3.0]):
        samples = {"bench.time_it(1, 'a')": timed(*values), "bench.time_it(2, 'a')": failed}
        result = add_samples(result, [described()], samples, seconds=1.5)
    row = columns(result)
    assert row["result"] == [2.0, None]
    assert row["samples"] == [[1.0, 2.0, 3.0], None]
    assert row["stats_repeat"] == [3, None]
    assert row["stats_number"] == [7, None]
    assert (row["stats_q_25"][0], row["stats_q_75"][0]) == (1.5, 2.5)
    assert row["params"] == [["1", "2"], ["'a'"]]
    assert result["params"] == {"machine": "here", "python": "3.12"}


def test_a_new_benchmark_version_starts_over_and_skips_are_nan():
    result = add_samples(
        new_result("a" * 40, 0, "3.12", MACHINE), [described()], {"bench.time_it(1, 'a')": timed(1.0)}, seconds=1
    )
    skipped = {"bench.time_it(1, 'a')": timed(5.0), "bench.time_it(2, 'a')": [NotTimed(kind="skipped", message="")]}
    row = columns(add_samples(result, [described("2")], skipped, seconds=1))
    assert row["samples"] == [[5.0], None]
    assert math.isnan(row["result"][1])


def test_what_was_not_asked_stays_as_it_was():
    result = add_samples(
        new_result("a" * 40, 0, "3.12", MACHINE), [described()], {"bench.time_it(1, 'a')": timed(1.0)}, seconds=1
    )
    assert add_samples(result, [described("2")], {}, seconds=1) == result


def test_results_of_asv_are_appended_where_it_kept_samples():
    before = {"results": {"bench.time_it": [[1.0], [], "v", 0, 0, None, None, 1, 1, [3], [2], [[1.0, 1.0]], None]}}
    columns_of_asv = ["result", "params", "version", "samples", "stats_number"]
    result = {
        "result_columns": columns_of_asv,
        "results": {"bench.time_it": [[4.0], [], "v", [[4.0]], [3]], "bench.track_it": [[9.0], [], "w"]},
    }
    joined = append_result(before, result)
    assert columns(joined)["samples"] == [[1.0, 1.0, 4.0]]
    assert columns(joined)["result"] == [1.0]
    assert joined["results"]["bench.track_it"][0] == [9.0]


@pytest.mark.parametrize(("count", "left_out"), [(8, 0), (20, 3), (100, 36)])
def test_the_interval_of_the_median_holds_it_in_99_percent(count, left_out):
    from scipy.special import bdtr

    figures = figures_of(list(map(float, range(count))))
    assert (figures["ci_99_a"], figures["ci_99_b"]) == (left_out, count - 1 - left_out)
    assert 2 * bdtr(left_out, count, 0.5) <= 0.01 < 2 * bdtr(left_out + 1, count, 0.5)


def test_few_samples_have_a_median_and_no_interval():
    figures = figures_of(list(np.arange(7.0)))
    assert (figures["result"], figures["ci_99_a"], figures["ci_99_b"]) == (3.0, None, None)
    assert figures_of([]) is None


def test_descriptions_replace_those_of_the_same_name():
    before = {"old": {"version": "0"}, "bench.time_it": {"version": "0"}, "version": 2}
    told = with_descriptions(before, [described()])
    assert told["old"] == {"version": "0"}
    assert told["bench.time_it"]["version"] == "1"
    assert told["bench.time_it"]["param_names"] == ["n", "kind"]
    assert told["version"] == 2
