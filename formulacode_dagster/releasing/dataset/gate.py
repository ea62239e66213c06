"""`GATE.md`: what each release demanded of its tasks, how many held, and why the others were left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from formulacode_dagster.models.grading import LEAST_REWARD, GradingProbe, ReleaseGate
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.operating.store.ledger import entries_of
from formulacode_dagster.operating.store.measurements import newest_gradings
from formulacode_dagster.operating.store.pull_requests import done_in

from .markdown_text import escaped, shortened

if TYPE_CHECKING:
    from .index import DatasetIndex

GATE_FILE = "GATE.md"
TEMPLATE = Path(__file__).with_name("gate.md.jinja")


def release_gate(connection: Connection, month: str, released: Collection[str]) -> ReleaseGate:
    """Return what the gradings of *month* found, given its *released* items."""
    prs = {pr.item: pr for pr in done_in(connection, month, Stage.MEASUREMENTS)}
    entries = {entry.item: entry for entry in entries_of(connection, month, Stage.GRADINGS)}
    newest = newest_gradings(connection, month)
    graded = {
        item: newest[prs[item].key]
        for item, entry in entries.items()
        if item in prs and prs[item].key in newest and entry.state in (ItemState.DONE, ItemState.REJECTED)
    }
    held = [graded[item] for item in released if item in graded]
    results = [result for grading in graded.values() for result in grading.results]
    tried, rewarded = (Counter(result.probe for result in results if result.reward > least) for least in (-1, 0))
    lost = [entry for entry in entries.values() if entry.state in (ItemState.REJECTED, ItemState.FAILED)]
    left = Counter(entries[item].reason if item in entries else "never" for item in released if item not in graded)
    return ReleaseGate(
        graded=len(graded),
        gradable=len(held),
        not_gradable={entry.item: shortened(entry.detail) for entry in lost},
        not_graded=dict(sorted(left.items())),
        rewarded={probe.value: (rewarded[probe], tried[probe]) for probe in GradingProbe if tried[probe]},
        unfinished=sum(bool(grading.unfinished) for grading in held),
        oracle_reward=min((grading.oracle_reward for grading in held), default=None),
        cpu_seconds=round(sum(result.cpu_seconds for result in results), 1),
        machines=tuple(sorted({grading.machine for grading in graded.values()})),
        graders=tuple(sorted({grading.grader_sha256 for grading in graded.values()})),
        platform=version("formulacode-dagster"),
    )


def render_gate(index: DatasetIndex) -> str:
    """Return the page for a dataset with these months; the same index gives the same text."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(  # noqa: S701 - markdown; the template escapes texts of others
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"shortened": shortened, "escaped": escaped}
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    months = [month for month in index.months if month.gate is not None]
    return template.render(months=months, least_reward=LEAST_REWARD)
