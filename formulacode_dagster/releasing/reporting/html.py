"""The monthly report as one self-contained HTML file."""

from __future__ import annotations

import base64
from pathlib import Path

from formulacode_dagster.operating.files.atomic import disk_errors, replacing

from .charts import Charts, draw_charts, ratio_text
from .facts import ReportFacts
from .flames import flame_graphs


def render_report(facts: ReportFacts, before: ReportFacts, charts: Charts | None = None) -> str:
    """Return the report of *facts*, with the changes since *before*; every text from outside is escaped.

    *charts* are those of *facts*, drawn here if they are not given.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("formulacode_dagster.releasing.reporting"), autoescape=True, undefined=StrictUndefined
    )
    environment.filters["ratio"] = ratio_text
    charts = charts or draw_charts(facts)
    return environment.get_template("report.html.j2").render(
        facts=facts,
        before=before,
        funnel_png=base64.b64encode(charts.funnel).decode(),
        speedups_png=base64.b64encode(charts.speedups).decode(),
        flames={
            item: {
                benchmark: {arm.value: Markup(svg) for arm, svg in graphs.items()}  # noqa: S704 - names are escaped there
                for benchmark, graphs in flame_graphs(profile).items()
            }
            for item, profile in sorted(facts.profiles.items())
        },
    )


def write_report(folder: Path, facts: ReportFacts, before: ReportFacts, charts: Charts | None = None) -> Path:
    """Write `<month>.html` into *folder*, which is created if it is missing; atomically.

    *charts* are as for `render_report`. Raises OutsideSystemError when the disk does not take it.
    """
    path = folder / f"{facts.month}.html"
    text = render_report(facts, before, charts)
    with disk_errors(str(path)), replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return path
