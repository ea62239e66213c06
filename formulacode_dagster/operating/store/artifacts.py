"""Rows of the artifacts: frozen models in, frozen models out, by month and key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Integer,
    Select,
    Table,
    and_,
    bindparam,
    cast,
    delete,
    func,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY

from formulacode_dagster.models.agent_run import AgentResult, AgentRun, HackJudgement, Review, Trajectory
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.classification import Classification
from formulacode_dagster.models.correctness import Correctness
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.grading import TaskGrading
from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.models.intake import SearchGap
from formulacode_dagster.models.links import Discussion
from formulacode_dagster.models.measurement import Measurement, TaskProfile
from formulacode_dagster.models.problem import ProblemStatement
from formulacode_dagster.models.pull_request import Change, DashboardCandidate, IntakeCount, MergedPullRequest
from formulacode_dagster.models.release import PublishedImage, Release, Replay
from formulacode_dagster.models.repository import Repository
from formulacode_dagster.models.reproduction import Reproduction

from . import tables
from .bulk import insert_new, upsert
from .checksums import digest_of
from .tables import document_table

M = TypeVar("M", bound=Frozen)
PullRequestKey = tuple[int, int]
"""(repository id, number)."""
ROWS_AT_ONCE = 200
"""Rows in memory while a month is iterated: bodies may have 65,536 characters each."""


def _nothing(_: Frozen) -> dict[str, Any]:
    return {}


@dataclass(frozen=True)
class Artifact(Generic[M]):
    """One artifact: its table, the model of its rows, derived columns, and the relation that people query."""

    table: Table
    model: type[M]
    derived: Callable[[M], dict[str, Any]] = _nothing
    relation: str = ""
    """Name of the table or of a view over it; empty: not for queries."""

    def save(
        self, connection: Connection, rows: Sequence[M], derived: Callable[[M], dict[str, Any]] | None = None
    ) -> None:
        """Insert or replace *rows* by primary key in one batch; *derived* if the derived columns are known already."""
        upsert(connection, self.table, self._to_rows(rows, derived))

    def add(
        self, connection: Connection, rows: Sequence[M], derived: Callable[[M], dict[str, Any]] | None = None
    ) -> None:
        """Insert new *rows*, otherwise like `save` and cheaper; IntegrityError if one exists."""
        insert_new(connection, self.table, self._to_rows(rows, derived))

    def amend(self, connection: Connection, rows: Sequence[M], fields: Collection[str]) -> None:
        """Write only *fields* of *rows*, which are stored documents: values that others store in the rest stay."""
        document = self.table.c.document
        keys = [(column, f"key_{column.name}") for column in self.table.primary_key]
        statement = (
            update(self.table)
            .where(*(column == bindparam(key, type_=column.type) for column, key in keys))
            .values(document=document.op("||")(bindparam("changes", type_=document.type)))
        )
        plain = [row.model_dump(mode="json") for row in rows]
        values = [
            {"changes": {name: row[name] for name in fields}, **{key: row[column.name] for column, key in keys}}
            for row in plain
        ]
        if values:
            connection.execute(statement, values)

    def replace_month(self, connection: Connection, month: str, rows: Sequence[M]) -> None:
        """Replace all rows of *month* by *rows*; the old rows stay until the caller's transaction commits."""
        connection.execute(delete(self.table).where(self.table.c.month == month))
        self.save(connection, rows)

    def read(self, connection: Connection, month: str) -> list[M]:
        """All rows of *month*, ordered by key."""
        return list(self.iterate(connection, month))

    def iterate(self, connection: Connection, month: str) -> Iterator[M]:
        """Iterate over the rows of *month* by key, with few of them in memory; within the caller's transaction."""
        statement = self.select().where(self.table.c.month == month).order_by(*self.table.primary_key)
        with connection.execute(statement, execution_options={"yield_per": ROWS_AT_ONCE}) as rows:
            for row in rows.mappings():
                yield self.from_row(dict(row))

    def read_all(self, connection: Connection) -> list[M]:
        """Return the rows of all months; only for artifacts with a few small rows a month."""
        statement = self.select().order_by(*self.table.primary_key)
        return [self.from_row(dict(row)) for row in connection.execute(statement).mappings()]

    def read_keys(
        self, connection: Connection, month: str, keys: Collection[PullRequestKey]
    ) -> dict[PullRequestKey, M]:
        """The rows of *month* with these (repository id, number), by key and in its order."""
        if not keys:
            return {}
        columns = self.table.c
        ids, numbers = zip(*keys, strict=True)
        # two arrays: a list of pairs would be one parameter a number, and Postgres takes 65,535 of them
        wanted = func.unnest(cast(list(ids), ARRAY(BigInteger)), cast(list(numbers), ARRAY(Integer)))
        pairs = wanted.table_valued("repository_id", "number", name="wanted").render_derived()
        statement = (
            self.select()
            .join(pairs, and_(pairs.c.repository_id == columns.repository_id, pairs.c.number == columns.number))
            .where(columns.month == month)
            .order_by(*self.table.primary_key)
        )
        rows = [dict(row) for row in connection.execute(statement).mappings()]
        return {(row["repository_id"], row["number"]): self.from_row(row) for row in rows}

    @property
    def columns(self) -> list[Column[Any]]:
        """The columns that the model is made of."""
        return [column for column in self.table.columns if self.is_document or column.name in self.model.model_fields]

    def select(self) -> Select[Any]:
        """A query of the columns that the model is made of."""
        return select(*self.columns)

    def from_row(self, row: dict[str, Any]) -> M:
        """The model behind one row of `select`."""
        return self.model.model_validate(row["document"] if self.is_document else row)

    @property
    def is_document(self) -> bool:
        """True if a row is stored as one document."""
        return "document" in self.table.columns

    def _to_rows(self, rows: Sequence[M], derived: Callable[[M], dict[str, Any]] | None) -> list[dict[str, Any]]:
        beside = derived or self.derived
        return [{**self._to_row(row), **beside(row)} for row in rows]

    def _to_row(self, model: M) -> dict[str, Any]:
        plain = model.model_dump(mode="json")
        if self.is_document:
            keys = {column.name: plain[column.name] for column in self.table.primary_key}
            return {**keys, "document": plain}
        typed = {name: getattr(model, name) for name in plain}
        return {name: value if isinstance(value, datetime) else plain[name] for name, value in typed.items()}


def documents(relation: str, model: type[M], *keys: str) -> Artifact[M]:
    """Declare an artifact whose rows are documents: the *model* is their only declaration.

    `migrate` makes the table and a view called *relation*, with a documented column for each field.
    """
    return Artifact(document_table(relation, keys or ("month", "repository_id", "number")), model, relation=relation)


REPOSITORIES = Artifact(tables.REPOSITORIES, Repository, relation="repositories")
SEARCH_GAPS = Artifact(tables.SEARCH_GAPS, SearchGap)
INTAKE_COUNTS = Artifact(tables.INTAKE_COUNTS, IntakeCount, relation="intake_counts")
MERGED_PULL_REQUESTS = Artifact(
    tables.MERGED_PULL_REQUESTS,
    MergedPullRequest,
    derived=lambda row: {"digest": digest_of(row)},
    relation="merged_pull_requests",
)
DASHBOARD_CANDIDATES = documents("dashboard_candidates", DashboardCandidate)
CHANGES = Artifact(tables.CHANGES, Change, relation="changes")
CLASSIFICATIONS = documents("classifications", Classification)
DISCUSSIONS = documents("discussions", Discussion)
PROBLEM_STATEMENTS = documents("problem_statements", ProblemStatement)
ENVIRONMENTS = documents("environments", Environment)
IMAGES = documents("images", BuiltImage)
REPRODUCTIONS = documents("reproductions", Reproduction)
MEASUREMENTS = documents("measurements", Measurement)
CORRECTNESS = documents("correctness", Correctness)
PROFILES = documents("profiles", TaskProfile)
PUBLISHED_IMAGES = documents("published_images", PublishedImage)
GRADINGS = documents("gradings", TaskGrading, "month", "repository_id", "number", "attempt")
RELEASES = documents("releases", Release, "month", "tag", "destination")
REPLAYS = documents("replays", Replay, "month", "task_id", "attempt")
AGENT_RUNS = documents("agent_runs", AgentRun, "month", "run_id")
HACK_JUDGEMENTS = documents("hack_judgements", HackJudgement, "month", "run_id", "model", "rubric")
TRAJECTORIES = documents("trajectories", Trajectory, "month", "run_id")
AGENT_RESULTS = documents("agent_results", AgentResult, "month", "contestant")
REVIEWS = documents("reviews", Review, "month", "task_id", "reviewed_at")
QUERIED = tuple(each for each in list(globals().values()) if isinstance(each, Artifact) and each.relation)
"""The artifacts that people query."""
