"""Cost of published sites and change points, and accuracy of step detection: ratios of one run, on one machine.

Run by `make bench-lite`, which brings asv, ruptures and pandas along in an environment of their own.
"""

from __future__ import annotations

import argparse
import json
import resource
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from formulacode_dagster.measuring.breakpoints import methods
from formulacode_dagster.measuring.breakpoints.choices import MINIMUM_CHANGE, Method
from formulacode_dagster.measuring.breakpoints.steps import bounds_of_levels
from formulacode_dagster.sources.dashboards.site import read_site

from .synthetic_site import ROWS, write_site
from .synthetic_steps import GRID, Score, plant, score, synthetic_series

PELT = "pelt"
SEED = 14
SERIES_A_CELL = 3
CORRELATIONS = (0.0, 0.5)
"""Correlation of the noise: none, and as on machines with other load."""
WINDOW, PLANTED, PLANTED_SERIES = (100, 300), 2, 80
FEWEST_POINTS = 20
SMOOTHED_OVER = 31
LEAST_TABLES_RATIO, LEAST_STEPS_RATIO, MOST_MEGABYTES = 10.0, 5.0, 500
SITES_IN_MEMORY = 10

Floats = NDArray[np.float64]
Find = Callable[[Floats], Sequence[int]]
T = TypeVar("T")


def main() -> int:
    """Measure, print, and end with 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sites", type=Path, help="a folder of asv sites, for steps in real series")
    folder = parser.parse_args().sites
    # before pandas is imported, which has memory of its own
    memory = peak_megabytes()
    tables = tables_ratio()
    print(f"tables: {tables['rows']:,} rows: {tables['seconds']:.3f} s, pandas {tables['pandas_seconds']:.3f} s")
    grid = grid_scores(FINDERS)
    for cell, scores in grid.items():
        print(f"{cell:>18}  " + "  ".join(f"{name} {value:.2f}" for name, value in scores.items()))
    report: dict[str, Any] = {"megabytes": memory, "tables": tables, "grid": grid}
    reached = memory <= MOST_MEGABYTES and tables["ratio"] >= LEAST_TABLES_RATIO
    reached &= grid["all"][Method.SEEDED] > grid["all"][PELT]
    if folder is not None:
        series = real_series(folder)
        planted = planted_scores(series, FINDERS)
        steps = steps_ratio(series)
        print("           planted  " + "  ".join(f"{name} {value:.2f}" for name, value in planted.items()))
        print(f"steps of {len(series)} real series: {steps['seconds']:.3f} s, Pelt(rbf) {steps['pelt_seconds']:.3f} s")
        report |= {"planted": planted, "steps": steps}
        reached &= steps["ratio"] >= LEAST_STEPS_RATIO and planted[Method.SEEDED] > planted[PELT]
    print(json.dumps(report | {"reached": bool(reached)}))
    return 0 if reached else 1


def tables_ratio() -> dict[str, float]:
    """A site from files to tables, compared with a loop that makes a frame of each graph, as with pandas."""
    with tempfile.TemporaryDirectory() as name:
        site = write_site(Path(name))
        ours, read = best(lambda: read_site(site))
        theirs, frame = best(lambda: by_pandas(site))
    assert read.points.height == len(frame) == ROWS
    assert np.isclose(float(read.points["value"].sum()), frame["time"].sum(), rtol=1e-12)
    return {"rows": ROWS, "seconds": ours, "pandas_seconds": theirs, "ratio": round(theirs / ours, 1)}


def by_pandas(site: Path) -> Any:
    """The graphs and summaries of *site*: each file a frame, with its columns, put together in the end."""
    import pandas as pd

    index = json.loads((site / "index.json").read_text())
    hashes = {int(revision): commit for revision, commit in index["revision_to_hash"].items()}
    dates = {int(revision): date for revision, date in index["revision_to_date"].items()}

    def frame(path: Path, name: str) -> Any:
        table = pd.DataFrame(json.loads(path.read_text()), columns=["revision", "time"])
        table["hash"] = table["revision"].map(hashes)
        table["date"] = pd.to_datetime(table["revision"].map(dates), unit="ms")
        table["benchmark"] = name
        return table

    frames = []
    for parameters in index["graph_param_list"]:
        folder = site.joinpath("graphs", *sorted(f"{key}-{value}" for key, value in parameters.items()))
        for name in index["benchmarks"]:
            table = frame(folder / f"{name}.json", name)
            for key, value in parameters.items():
                table[key] = value
            frames.append(table)
    # files read for a site besides its graphs
    pd.concat([frame(site / "graphs" / "summary" / f"{name}.json", name) for name in index["benchmarks"]])
    return pd.concat(frames, ignore_index=True)


def best(work: Callable[[], T], times: int = 3) -> tuple[float, T]:
    """Return the minimal CPU seconds of *work*, independent of other load, and its last result."""
    seconds = []
    for _ in range(times):
        begun = time.process_time()
        result = work()
        seconds.append(time.process_time() - begun)
    return min(seconds), result


def told(find: Find) -> Find:
    """Return the steps of *find* as users see them: steps below the least change are merged, for every method."""
    return lambda values: bounds_of_levels(values, np.array(find(values), np.int64), MINIMUM_CHANGE)[1:-1]


def by_pelt(values: Floats) -> Sequence[int]:
    """`ruptures.Pelt` with the kernel of `rbf` and its defaults; the penalty is the one of our `rbf`."""
    import ruptures

    ends: list[int] = ruptures.Pelt(model="rbf").fit(values).predict(pen=methods.RBF_PENALTY * np.log(len(values)))
    return ends[:-1]


def by_method(method: Method) -> Find:
    """Return the step finder of *method*."""
    return lambda values: methods.change_points(values, method).tolist()


FINDERS: dict[str, Find] = {**{method: by_method(method) for method in Method}, PELT: by_pelt}


def grid_scores(finders: dict[str, Find], cells: Iterable[tuple[int, int]] = GRID) -> dict[str, dict[str, float]]:
    """F1 of each of *finders* by cell, with noise that is independent and noise that wanders; `all` adds them up."""
    rng = np.random.default_rng(SEED)
    total: defaultdict[str, Score] = defaultdict(Score)
    scores: dict[str, dict[str, float]] = {}
    for (length, steps), correlation in product(cells, CORRELATIONS):
        drawn = [synthetic_series(rng, length, steps, correlation) for _ in range(SERIES_A_CELL)]
        cell = {name: summed(find, drawn) for name, find in finders.items()}
        scores[f"{length}/{steps}{' wandering' if correlation else ''}"] = {
            name: round(value.f1, 3) for name, value in cell.items()
        }
        for name, value in cell.items():
            total[name] += value
    return {**scores, "all": {name: round(value.f1, 3) for name, value in total.items()}}


def summed(find: Find, drawn: Iterable[tuple[Floats, NDArray[np.int64]]]) -> Score:
    """Score of *find* over all of *drawn*, for the steps that users see."""
    return sum((score(told(find)(values), truth.tolist()) for values, truth in drawn), Score())


def real_series(folder: Path) -> list[Floats]:
    """The series of all sites in *folder* that have FEWEST_POINTS, as they were measured."""
    series = []
    for place in sorted(path.parent for path in folder.glob("*/index.json")):
        points = read_site(place).points.drop_nulls("value").sort("series", "revision")
        series += [part["value"].to_numpy() for part in points.partition_by("series") if part.height >= FEWEST_POINTS]
    return series


def planted_scores(series: Sequence[Floats], finders: dict[str, Find]) -> dict[str, float]:
    """F1 for steps planted into the noise of real *series*: the residuals of a running median, which have no steps."""
    rng = np.random.default_rng(SEED)
    drawn: list[tuple[Floats, NDArray[np.int64]]] = []
    for values in series[:: max(1, len(series) // PLANTED_SERIES)]:
        if len(values) < WINDOW[0] + SMOOTHED_OVER or values.min() <= 0 or values.min() == values.max():
            continue
        medians = np.median(np.lib.stride_tricks.sliding_window_view(values, SMOOTHED_OVER), axis=1)
        half = SMOOTHED_OVER // 2
        noise = (values[half : half + len(medians)] / medians)[: WINDOW[1]]
        drawn.append(plant(rng, noise, PLANTED))
    return {name: summed(find, drawn).f1 for name, find in finders.items()}


def steps_ratio(series: Sequence[Floats]) -> dict[str, float]:
    """Seconds for the steps of all *series*, by the default method and by `Pelt(rbf)`."""
    ours, _ = best(lambda: [FINDERS[Method.SEEDED](values) for values in series])
    theirs, _ = best(lambda: [by_pelt(values) for values in series], times=1)
    return {"series": len(series), "seconds": ours, "pelt_seconds": theirs, "ratio": round(theirs / ours, 1)}


def peak_megabytes() -> int:
    """The most memory of this process after it read as many sites as SITES_IN_MEMORY, and kept their tables."""
    with tempfile.TemporaryDirectory() as name:
        site = write_site(Path(name))
        kept = [read_site(site) for _ in range(SITES_IN_MEMORY)]
    assert sum(read.points.height for read in kept) == SITES_IN_MEMORY * ROWS
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024


if __name__ == "__main__":
    sys.exit(main())
