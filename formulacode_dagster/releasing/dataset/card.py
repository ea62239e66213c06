"""The dataset card: `README.md` of the dataset, with the configs the `datasets` library reads from its head."""

from __future__ import annotations

import math
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import Any, get_args, get_origin

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.columns import plain_type
from formulacode_dagster.models.release import TaskRecord

from .index import SPEEDUP_RANGES, DatasetIndex, IndexedMonth
from .markdown_text import escaped
from .parquet import DATASET_COLUMNS, table_columns
from .tables import data_path
from .task_tables import TABLES

CARD_FILE = "README.md"
BAR = 40
"""Characters of the longest bar."""
TEMPLATE = Path(__file__).with_name("card.md.jinja")


def render_card(index: DatasetIndex) -> str:
    """Return the card of a dataset with these months; the same index gives the same text."""
    import yaml
    from jinja2 import Environment, StrictUndefined

    environment = Environment(  # noqa: S701 - markdown; the template escapes texts of others
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    environment.filters["escaped"] = escaped
    of_tasks = ("default", "verified", *(["reviewed"] if index.reviewed else []))
    of_many_months: dict[str, type[Frozen]] = dict.fromkeys(of_tasks, TaskRecord)
    of_many_months |= {table.value: model for table, model in TABLES.items()}
    info = [{"config_name": name, "features": features(model)} for name, model in of_many_months.items()]
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    tasks = sum(month.tasks for month in index.months)
    return template.render(
        months=index.months,
        tasks=tasks,
        verified=sum(month.verified for month in index.months),
        reviewed=index.reviewed,
        size_category=_size_category(tasks),
        plot=_bars(sum((Counter(month.speedups) for month in index.months), Counter())),
        licenses=sum((Counter(month.licenses) for month in index.months), Counter()).most_common(),
        dataset_info=yaml.safe_dump({"dataset_info": info}, sort_keys=False),
        columns=DATASET_COLUMNS,
        tables={table.value: (model.__doc__, table_columns(model)) for table, model in TABLES.items()},
        change=lambda month: _change(index.before(month.month), month),
        data_path=data_path,
        cells=lambda each: map(escaped, each.cells.values()),
    )


def _bars(tasks: Counter[str]) -> str:
    """A bar for each range of speed-ups, in characters, since every place that shows a card shows those."""
    most, width = max(tasks.values(), default=0), max(map(len, SPEEDUP_RANGES))
    return "\n".join(
        f"{name:>{width}}  {'█' * math.ceil(BAR * tasks[name] / most)} {tasks[name]}" for name in SPEEDUP_RANGES if most
    )


def _change(before: IndexedMonth | None, month: IndexedMonth) -> str:
    """Return the differences of *month* from the one *before* it in the dataset."""
    if before is None:
        return "–"
    parts = [f"{month.tasks - before.tasks:+d} tasks", f"{month.verified - before.verified:+d} verified"]
    if before.median_speedup and month.median_speedup:
        parts.append(f"median {month.median_speedup - before.median_speedup:+.2f}×")
    added = sorted(set(month.columns) - set(before.columns)) if before.columns else []
    return ", ".join([*parts, *([f"new columns {', '.join(added)}"] if added else [])])


def _size_category(tasks: int) -> str:
    for limit, name in ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K")):
        if tasks < limit:
            return name
    return "100K<n<1M"


_TYPES: dict[Any, str] = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    datetime: "timestamp[us, tz=UTC]",
}


def features(model: type[Frozen]) -> list[dict[str, Any]]:
    """The fields of *model*, each with its name, and `dtype`, `list` or `struct`."""
    return [{"name": name, **_feature(field.annotation)} for name, field in model.model_fields.items()]


def _feature(annotation: Any) -> dict[str, Any]:
    plain = plain_type(annotation)
    if get_origin(plain) is tuple:
        inner = _feature(get_args(plain)[0])
        return {"list": inner.get("dtype") or inner.get("struct") or inner}
    if plain in _TYPES:
        return {"dtype": _TYPES[plain]}
    return {"struct": features(plain)}
