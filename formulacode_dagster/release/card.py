"""The dataset card: `README.md` of the dataset, with the configs the `datasets` library reads from its head."""

from __future__ import annotations

from pathlib import Path

from .dataset import DATASET_COLUMNS
from .index import Index

CARD_FILE = "README.md"
TEMPLATE = Path(__file__).with_name("card.md.jinja")


def data_path(month: str) -> str:
    """Where the month's tasks lie in the dataset."""
    return f"data/{month}.parquet"


def verified_path(month: str) -> str:
    """Where the month's verified tasks lie in the dataset."""
    return f"verified/{month}.parquet"


def render_card(index: Index) -> str:
    """The card of a dataset that holds these months; the same index gives the same text."""
    from jinja2 import Environment, StrictUndefined

    environment = Environment(  # noqa: S701 - markdown, from our own figures only
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    template = environment.from_string(TEMPLATE.read_text(encoding="utf-8"))
    tasks = sum(month.tasks for month in index.months)
    return template.render(
        months=index.months,
        tasks=tasks,
        verified=sum(month.verified for month in index.months),
        size_category=_size_category(tasks),
        columns={column.name: column.description for column in DATASET_COLUMNS},
        data_path=data_path,
        verified_path=verified_path,
    )


def _size_category(tasks: int) -> str:
    for limit, name in ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K")):
        if tasks < limit:
            return name
    return "100K<n<1M"
