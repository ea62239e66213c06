"""The monthly report as one HTML file that needs nothing beside it."""

from __future__ import annotations

import base64
import os
from contextlib import suppress
from pathlib import Path

from formulacode_dagster.models.errors import OutsideSystemError

from .charts import Charts, draw_charts, ratio_text
from .facts import MonthFacts


def render_report(facts: MonthFacts, before: MonthFacts, charts: Charts | None = None) -> str:
    """The report of *facts*, with what changed since *before*; every text from outside is escaped.

    *charts* are those of *facts*, which are drawn where they are not given.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("formulacode_dagster.reporting"), autoescape=True, undefined=StrictUndefined
    )
    environment.filters["ratio"] = ratio_text
    charts = charts or draw_charts(facts)
    return environment.get_template("report.html.j2").render(
        facts=facts,
        before=before,
        funnel_png=base64.b64encode(charts.funnel).decode(),
        speedups_png=base64.b64encode(charts.speedups).decode(),
    )


def write_report(folder: Path, facts: MonthFacts, before: MonthFacts, charts: Charts | None = None) -> Path:
    """Write `<month>.html` into *folder*, which is made where it is missing; whole or not at all.

    *charts* are as for `render_report`. Raises OutsideSystemError when the disk does not take it.
    """
    path = folder / f"{facts.month}.html"
    partial = folder / f".{facts.month}.{os.getpid()}.html"
    text = render_report(facts, before, charts)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise OutsideSystemError(
            "disk", f"cannot write {path}", why=str(error), remedy="Free disk space, then run the month again"
        ) from error
    return path
