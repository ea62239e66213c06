"""Tables of dashboards and breakpoints: whole frames by dashboard, with documented columns.

Their rows are many and simple, so they have no models: `frames` writes and reads them as columns.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Double, Integer, Table
from sqlalchemy.types import TypeEngine

from formulacode_dagster.operating.store.column_types import StorableJson, StorableText, UtcTime
from formulacode_dagster.operating.store.tables import METADATA

ROW = "row"
"""The order of the rows of a frame, which is part of it."""
_KEYS = {
    "dashboard": "name of the dashboard",
    "source": "`published` for a site, `results` for raw results",
    "method": "how the steps were found: `seeded`, `asv` or `rbf`",
}


def _column(name: str, kind: type[TypeEngine[Any]], meaning: str, *, optional: bool = False) -> Column[Any]:
    return Column(name, kind, nullable=optional, comment=meaning)


def _text(name: str, meaning: str, *, optional: bool = False) -> Column[Any]:
    return _column(name, StorableText, meaning, optional=optional)


def _json(name: str, meaning: str) -> Column[Any]:
    return _column(name, StorableJson, meaning)


def _time(name: str, meaning: str, *, optional: bool = False) -> Column[Any]:
    return _column(name, UtcTime, meaning, optional=optional)


def _int(name: str, meaning: str, *, optional: bool = False) -> Column[Any]:
    return _column(name, Integer, meaning, optional=optional)


def _big(name: str, meaning: str, *, optional: bool = False) -> Column[Any]:
    return _column(name, BigInteger, meaning, optional=optional)


def _real(name: str, meaning: str, *, optional: bool = True) -> Column[Any]:
    return _column(name, Double, meaning, optional=optional)


def _table(name: str, meaning: str, keys: tuple[str, ...], *columns: Column[Any], rows: bool = True) -> Table:
    key: list[Column[Any]] = [Column(each, StorableText, primary_key=True, comment=_KEYS[each]) for each in keys]
    if rows:
        order = "its place among those of the dashboard, from 0"
        key.append(Column(ROW, Integer, primary_key=True, autoincrement=False, comment=order))
    return Table(name, METADATA, *key, *columns, comment=meaning)


_SOURCE = ("dashboard", "source")

DASHBOARDS = _table(
    "dashboards",
    "A dashboard as it was last read: a published site, or raw results collated.",
    _SOURCE,
    _text("address", "its source: an address, or a folder"),
    _text("repository", "owner/name of the repository that is benchmarked; empty if unknown"),
    _text("project", "the project's name on the site"),
    _text("commit_url", "URL prefix of a commit's page"),
    _json("benchmarks", "names of the benchmarks that the index lists"),
    _int("graphs_expected", "environments × benchmarks of the index"),
    _int("graphs_read", "graphs that could be read"),
    _int("summaries_expected", "benchmarks of the index"),
    _int("summaries_read", "summaries that could be read"),
    _text("run_id", "the run of Dagster that read it; empty for the command line"),
    _time("read_at", "when it was read"),
    rows=False,
)
REVISIONS = _table(
    "dashboard_revisions",
    "A commit that a dashboard knows.",
    _SOURCE,
    _big("revision", "the number of the commit in the order of the history"),
    _text("hash", "its SHA"),
    _time("date", "its date", optional=True),
    _json("tags", "its tags"),
)
SERIES = _table(
    "dashboard_series",
    "A benchmark with its parameters in an environment.",
    _SOURCE,
    _int("series", "its number, within the dashboard"),
    _text("benchmark", "name of the benchmark"),
    _json("parameters", "texts of the parameters, in order"),
    _text("machine", "name of the machine"),
    _text("branch", "branch of the commits"),
    _text("environment", "machine, branch, Python and packages, as JSON"),
    _text("type", "asv's kind of benchmark: `time`, `peakmemory`, `track`, …"),
    _text("unit", "unit of its values"),
    _text("path", "its graph in the site"),
)
POINTS = _table(
    "dashboard_points",
    "A value of a series at a commit.",
    _SOURCE,
    _int("series", "number of the series"),
    _big("revision", "number of the commit"),
    _real("value", "in the unit of the series; null if it was not measured, or failed"),
    _real("low", "lower end of the 99 % interval, if raw results have it"),
    _real("high", "upper end of the 99 % interval, if raw results have it"),
)
SUMMARIES = _table(
    "dashboard_summaries",
    "A benchmark at a commit, over all its environments and parameters.",
    _SOURCE,
    _text("benchmark", "name of the benchmark"),
    _big("revision", "number of the commit"),
    _real("value", "geometric mean, in the unit of the benchmark"),
)
REGRESSIONS = _table(
    "dashboard_regressions",
    "A step up that the site itself reports.",
    _SOURCE,
    _text("benchmark", "name of the benchmark"),
    _text("path", "its graph in the site"),
    _big("parameter", "number of the combination of parameters; null without any", optional=True),
    _real("latest", "the level now"),
    _real("best", "the best level ever"),
    _big("before_revision", "the last commit with the level before", optional=True),
    _big("after_revision", "the first commit with the level after", optional=True),
    _real("before", "the level before"),
    _real("after", "the level after"),
)
FAULTS = _table(
    "dashboard_faults",
    "A problem of a dashboard's file.",
    _SOURCE,
    _text("path", "the file"),
    _text("kind", "the problem"),
    _text("detail", "more of it"),
)


def _between() -> tuple[Column[Any], ...]:
    return (
        _big("before_revision", "number of the last commit with the level before"),
        _big("after_revision", "number of the first commit with the level after"),
        _text("before_hash", "the last commit with the level before", optional=True),
        _text("after_hash", "the first commit with the level after", optional=True),
        _time("date", "of the first commit with the level after", optional=True),
    )


BREAKPOINTS = _table(
    "breakpoints",
    "A step of a series: its cause is among the commits before..after.",
    (*_SOURCE, "method"),
    _int("series", "number of the series"),
    _text("benchmark", "name of the benchmark"),
    _json("parameters", "texts of the parameters, in order"),
    *_between(),
    _real("before", "the level before: the median of its points", optional=False),
    _real("after", "the level after: the median of its points", optional=False),
    _real("ratio", "after / before; null if a level is not positive"),
    _real("ratio_low", "lower end of its 95 % interval"),
    _real("ratio_high", "upper end of its 95 % interval"),
    _int("points_before", "points of the level before"),
    _int("points_after", "points of the level after"),
    _text("direction", "`improvement`, `regression`, or `unknown` if neither type nor unit decides"),
)
BREAKPOINT_COMMITS = _table(
    "breakpoint_commits",
    "A range of commits at which benchmarks took a step, over all series.",
    (*_SOURCE, "method"),
    *_between(),
    _int("improved", "benchmarks that got better"),
    _int("regressed", "benchmarks that got worse"),
    _int("steps", "steps of all series"),
    _real("median_ratio", "median of after / before over these steps"),
    _real("largest_change", "after / before that is furthest from 1"),
    _int("pull_request", "the pull request that brought the commit, if intake or the mirror knows it", optional=True),
)
REPLICATION = _table(
    "replication",
    "Two sets of breakpoints of one repository compared, over their common commits.",
    ("dashboard",),
    _text("reference", "dashboard/source of the first set"),
    _text("other", "dashboard/source of the second set"),
    _text("method", "how the steps of both were found"),
    _text("first_commit", "the oldest commit that both measured"),
    _text("last_commit", "the newest commit that both measured"),
    _int("commits", "breakpoints that both sets have"),
    _int("only_reference", "breakpoints only in the first set"),
    _int("only_other", "breakpoints only in the second set"),
    _int("pairs", "steps of the same benchmark, parameters and breakpoint in both"),
    _real("pearson", "correlation of the logarithms of both ratios"),
    _real("pearson_low", "lower end of its 95 % interval"),
    _real("pearson_high", "upper end of its 95 % interval"),
    _real("spearman", "correlation of their ranks"),
    _real("spearman_low", "lower end of its 95 % interval"),
    _real("spearman_high", "upper end of its 95 % interval"),
    _real("same_sign", "share of pairs in the same direction"),
    _real("same_sign_low", "lower end of its 95 % interval"),
    _real("same_sign_high", "upper end of its 95 % interval"),
    _real("bias", "Bland–Altman: mean of other / reference, by logarithm"),
    _real("agreement_low", "Bland–Altman: lower limit of agreement of other / reference"),
    _real("agreement_high", "Bland–Altman: upper limit of agreement of other / reference"),
)
SITE_TABLES = {
    "revisions": REVISIONS,
    "series": SERIES,
    "points": POINTS,
    "summaries": SUMMARIES,
    "regressions": REGRESSIONS,
    "faults": FAULTS,
}
"""Tables of a site by the names of its frames."""
