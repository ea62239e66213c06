"""The monthly report as one self-contained HTML file, in the style of the site."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from formulacode_dagster.operating.files.atomic import disk_errors, replacing

from .charts import ratio_text
from .facts import ReportFacts
from .flames import flame_graphs
from .plots import interval_plot

SHOWN_CHARTS = 200
"""Measured pull requests whose intervals are drawn."""


def render_report(facts: ReportFacts, before: ReportFacts) -> str:
    """Return the report of *facts*, with the changes since *before*; every text from outside is escaped."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(loader=PackageLoader(__package__), autoescape=True, undefined=StrictUndefined)
    environment.filters["ratio"] = ratio_text
    shown = facts.measured[:SHOWN_CHARTS]
    span = max((max(task.high, 1 / task.low) for task in shown if task.low > 0), default=1.0)
    return environment.get_template("report.html.j2").render(
        facts=facts,
        before=before,
        style=Markup(files(__package__).joinpath("static", "style.css").read_text("utf-8")),  # noqa: S704 - ours
        intervals=[interval_plot(task.low, task.speedup, task.high, span=span) for task in shown],
        flames={
            item: {
                benchmark: {arm.value: Markup(svg) for arm, svg in graphs.items()}  # noqa: S704 - names are escaped there
                for benchmark, graphs in flame_graphs(profile).items()
            }
            for item, profile in sorted(facts.profiles.items())
        },
    )


def write_report(folder: Path, facts: ReportFacts, before: ReportFacts) -> Path:
    """Write `<month>.html` into *folder*, which is created if it is missing; atomically.

    Raises OutsideSystemError when the disk does not take it.
    """
    path = folder / f"{facts.month}.html"
    text = render_report(facts, before)
    with disk_errors(str(path)), replacing(path) as partial:
        partial.write_text(text, encoding="utf-8")
    return path
