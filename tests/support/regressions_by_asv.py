"""Regressions of raw results by our `asv` method: a program, for an environment that asv is installed in."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import polars as pl

from formulacode_dagster.measuring.breakpoints.regressions import regressions_of
from formulacode_dagster.sources.dashboards.raw_results import collate_folder
from formulacode_dagster.sources.dashboards.sites import Dashboard
from formulacode_dagster.sources.git.history import Mirror

REPOSITORY = "example/sample"


def main() -> None:
    """Print the regressions of the results and the mirror that are named, with their intervals and without."""
    results, mirror_path, site = sys.argv[1:]
    with Mirror(REPOSITORY, Path(mirror_path)) as mirror:
        collated = collate_folder(Dashboard(name="sample", results=results), Path(site), mirror=mirror, published=None)
    paths = collated.site.series.select("series", "path", pl.int_range(pl.len()).over("path").alias("parameter"))
    points = collated.site.points
    told = {
        name: regressions_of(of).join(paths, on="series").drop("series").to_dicts()
        for name, of in (("weighted", points), ("unweighted", points.drop("low", "high")))
    }
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
