"""The dataset as objects: tasks by their id, from any destination and any file names."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.month import Month
from formulacode_dagster.releasing.dataset.destination import Destination, released_tasks
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from formulacode_dagster.releasing.dataset.hub import HubDestination
from formulacode_dagster.releasing.dataset.index import INDEX_FILE, DatasetIndex
from formulacode_dagster.releasing.dataset.parquet import KEY, from_parquet
from formulacode_dagster.releasing.dataset.tables import month_tables, table_path
from formulacode_dagster.releasing.dataset.task_tables import Table, TaskRecords
from formulacode_dagster.releasing.exports.formats import HarnessFormat
from formulacode_dagster.releasing.exports.write import export_task
from resources.destination import open_destination
from resources.settings import read_settings

if TYPE_CHECKING:
    import polars as pl

_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


class TableNotReleasedError(ConfigurationError):
    """The month was released before there was that table."""


@dataclass(frozen=True)
class Task:
    """One task: its row, and its rows in the other tables, which are read on demand.

    Of a month that was released before there was a table, asking for it raises TableNotReleasedError.
    """

    row: Mapping[str, Any]
    """The columns of the dataset's card, as this release has them."""
    _table: Callable[[Table], pl.DataFrame] = field(repr=False)

    @classmethod
    def from_record(cls, record: TaskRecords) -> Self:
        """The task that *record*, of the database, is going to be."""
        tables = month_tables([record])
        return cls(tables.tasks.row(0, named=True), tables.wide.__getitem__)

    @property
    def id(self) -> str:
        """`owner__repo-number`."""
        return str(self.row[KEY])

    @property
    def image(self) -> str | None:
        """Argument of `docker pull`, by digest; None if no image was published."""
        name, digest = self.row["image_name"], self.row["image_digest"]
        return f"{name.rpartition(':')[0]}@{digest}" if name and digest else None

    @property
    def statement(self) -> str:
        """The statement that solvers get, markdown."""
        return str(self.row["final_md"])

    @property
    def patch(self) -> bytes:
        """The author's patch, as `git apply` takes it at `row["pr_base_sha"]`."""
        return str(self.row["patch"]).encode(self.row["patch_encoding"])

    def export(self, format_: str, folder: str | Path) -> Path:
        """Write the task into *folder*, for `harbor`, `fc-eval` or `terminal-bench`; returns the folder.

        Raises ConfigurationError for another format and for a folder with other content, ItemFailure for an incomplete
        row, for example without a published image.
        """
        return export_task(self.row, HarnessFormat.named(format_), Path(folder))

    @property
    def workloads(self) -> pl.DataFrame:
        """A row for each benchmark: its figures, and the changed lines that it executes."""
        return self._table(Table.WORKLOADS)

    @property
    def samples(self) -> pl.DataFrame:
        """A row for each benchmark in each process: `arm`, `round`, `value` in the unit of its workload, …"""
        return self._table(Table.SAMPLES)

    @property
    def tests(self) -> pl.DataFrame:
        """A row for each test that reaches the change, with the outcome of every run."""
        return self._table(Table.TESTS)

    @property
    def replays(self) -> pl.DataFrame:
        """A row for each replay known at this release."""
        return self._table(Table.REPLAYS)

    @property
    def profiles(self) -> pl.DataFrame:
        """A row for each benchmark and arm of a task that was profiled: in which stacks its time is spent."""
        return self._table(Table.PROFILES)

    @property
    def procedures(self) -> pl.DataFrame:
        """A row on how it was built, measured and judged: suite, rule, limits, toolchain, conditions."""
        return self._table(Table.PROCEDURES)


class Dataset(Mapping[str, Task]):
    """Tasks by `owner__repo-number`, of every month."""

    def __init__(self, source: Destination, index: DatasetIndex, *, is_tagged: bool) -> None:
        """Use `Dataset.load`. The months of *index* are read as tagged there, or as *source* has them now."""
        self._source = source
        self.index = index
        self._is_tagged = is_tagged
        self._tables: dict[tuple[Table, str], pl.DataFrame] = {}
        self._by_task: dict[tuple[Table, str], dict[Any, pl.DataFrame]] = {}

    @classmethod
    def load(cls, where: str | Path | None = None, *, revision: str = "") -> Self:
        """Return the dataset in the folder or on the Hub (`owner/name`) that *where* names, else the one of the
        settings.

        With *revision*, a tag such as `formulacode@2026-03`, as it was released then; else the newest of every month.
        The Hub, and a token for it, are those of the settings. Raises ConfigurationError if there is no such dataset or
        revision, OutsideSystemError if the Hub does not answer.
        """
        source = _source(where)
        content = source.content(INDEX_FILE, revision)
        if content is None:
            raise ConfigurationError(
                f"{source.name} holds no release{f' {revision}' if revision else ''}",
                why=f"it has no {INDEX_FILE}",
                remedy="Name the folder of a dataset, one on the Hub as owner/name, or a tag that its card lists",
            )
        return cls(source, DatasetIndex.parse(content, f"{source.name}, {INDEX_FILE}"), is_tagged=bool(revision))

    @property
    def name(self) -> str:
        """`hub:owner/name`, or the folder's path."""
        return self._source.name

    @property
    def is_on_hub(self) -> bool:
        """True if it is on the Hub, and not a folder."""
        return isinstance(self._source, HubDestination)

    @functools.cached_property
    def tasks(self) -> pl.DataFrame:
        """A row for each task; columns that an older month lacks are null."""
        import polars as pl

        frames = [self._tasks_of(month.month, month.tag) for month in self.index.months]
        return pl.concat(frames, how="diagonal") if frames else pl.DataFrame({KEY: []}, schema={KEY: pl.String})

    def of_month(self, month: str) -> dict[str, Task]:
        """The tasks merged in `YYYY-MM`, by their ids."""
        return {task_id: self[task_id] for task_id, (its_month, _) in self._rows.items() if its_month == month}

    def file(self, path: str, month: str) -> bytes | None:
        """Return the file at *path* as of the release of `YYYY-MM` that this dataset shows; None if it has none."""
        facts = self.index.month(month)
        return self._source.content(path, facts.tag) if facts else None

    def __getitem__(self, task_id: str) -> Task:
        month, row = self._rows[task_id]
        return Task(row, lambda table: self._of_task(table, month, task_id))

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    @functools.cached_property
    def _rows(self) -> dict[str, tuple[str, dict[str, Any]]]:
        return {row[KEY]: (row["month"], row) for row in self.tasks.iter_rows(named=True)}

    def _tasks_of(self, month: str, tag: str) -> pl.DataFrame:
        tag = tag if self._is_tagged else ""
        content = released_tasks(Month.parse(month), tag, self._source.content, self.name)
        return from_parquet(content, f"{self.name}, {month}")

    def table(self, table: Table, month: str) -> pl.DataFrame:
        """One of the wide tables of `YYYY-MM`, for all its tasks.

        Raises TableNotReleasedError if the month was released before that table existed.
        """
        if (table, month) not in self._tables:
            self._tables[table, month] = self._read_table(table, month)
        return self._tables[table, month]

    def _of_task(self, table: Table, month: str, task_id: str) -> pl.DataFrame:
        whole, key = self.table(table, month), (table, month)
        if key not in self._by_task:
            self._by_task[key] = whole.partition_by(KEY, as_dict=True)
        return self._by_task[key].get((task_id,), whole.clear())

    def _read_table(self, table: Table, month: str) -> pl.DataFrame:
        facts = self.index.month(month)
        path = table_path(table, month)
        content = self._source.content(path, facts.tag if facts and self._is_tagged else "")
        if content is None:
            raise TableNotReleasedError(
                f"{month} of {self.name} has no {table}",
                why="it was released before they were",
                remedy="Load the newest revision, or ask for one",
            )
        return from_parquet(content, f"{self.name}, {path}")


def _source(where: str | Path | None) -> Destination:
    """A token for the Hub is needed only if the dataset is not public."""
    if where is None:
        return open_destination(read_settings())
    if isinstance(where, Path) or Path(where).is_dir():
        return FolderDestination(Path(where))
    if not _HUB_NAME.fullmatch(where):
        raise ConfigurationError(
            f"{where} is neither a folder nor a dataset of the Hub", remedy="Write the latter as owner/name"
        )
    return open_destination(read_settings({"hf_dataset": where}))
