"""The tables for SQLAlchemy. `sql/migrations/` creates them; a test compares the two."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Computed, Double, Identity, Integer, LargeBinary, MetaData, Table
from sqlalchemy.types import TypeEngine

from .column_types import StorableJson, StorableText, UtcTime

METADATA = MetaData()
_SINGULAR = {"correctness": "correctness", "trajectories": "trajectory"}
"""Relations whose documents are not called by the name without its last letter."""


def _columns(kind: type[TypeEngine[Any]], *names: str, key: bool = False) -> list[Column[Any]]:
    return [Column(name, kind, primary_key=key, nullable=False, autoincrement=False) for name in names]


_text, _json, _time = partial(_columns, StorableText), partial(_columns, StorableJson), partial(_columns, UtcTime)
_int, _big, _real = partial(_columns, Integer), partial(_columns, BigInteger), partial(_columns, Double)
_bool = partial(_columns, Boolean)


def _pull_request_key() -> list[Column[Any]]:
    return [*_text("month", key=True), *_big("repository_id", key=True), *_int("number", key=True)]


def document_table(relation: str, keys: Sequence[str]) -> Table:
    """Return the table of rows stored as documents, by *keys*, that people query as *relation*, a view."""
    kinds = {"repository_id": BigInteger, "number": Integer, "attempt": Integer}
    columns = [Column(key, kinds.get(key, StorableText), primary_key=True, autoincrement=False) for key in keys]
    name = _SINGULAR.get(relation, relation.removesuffix("s"))
    return Table(f"{name}_documents", METADATA, *columns, *_json("document"))


LEDGER = Table(
    "ledger",
    METADATA,
    *_text("stage", "month", "item", key=True),
    *_text("state", "reason", "detail", "log_tail"),
    *_int("attempt"),
    *_text("run_id", "inputs"),
    *_json("cost"),
    *_time("finished_at"),
    # the migration has the expression
    Column("kind", StorableText, Computed("item", persisted=True)),
)

SHARED_STAGES = Table(
    "shared_stages",
    METADATA,
    *_text("month", "stage", key=True),
    *_text("run_id"),
    *_json("options"),
    *_time("opened_at"),
)

CLAIMS = Table(
    "claims",
    METADATA,
    *_text("month", "stage", "item", key=True),
    *_text("inputs", "neighbours"),
    *_real("expected_seconds"),
    *_text("claimed_by"),
    *_time("lease_until"),
)

CHECK_VERDICTS = Table(
    "check_verdicts",
    METADATA,
    *_text("stage", "month", "check_name", key=True),
    *_bool("passed", "blocking"),
    *_text("summary"),
    *_json("offenders", "figures", "tally"),
    *_text("run_id"),
    *_time("judged_at"),
)

ACCEPTANCES = Table(
    "acceptances",
    METADATA,
    *_text("month", "stage", key=True),
    *_time("accepted_at", key=True),
    *_text("accepted_by", "reason", "summary"),
    *_int("failed", "done"),
)

WITHDRAWALS = Table(
    "withdrawals",
    METADATA,
    *_text("month", "task_id", key=True),
    *_time("withdrawn_at"),
    *_text("withdrawn_by", "reason"),
)

SPENDING = Table(
    "spending",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    *_text("month", "stage", "item", "run_id"),
    *_time("spent_at"),
    *_json("cost"),
)

COMPLETIONS = Table(
    "completions",
    METADATA,
    *_text("key", key=True),
    *_int("attempt", key=True),
    *_text("model", "content", "mode"),
    Column("temperature", Double),
    *_int("tokens_in", "tokens_out"),
    *_real("dollars"),
    *_time("created_at"),
)

CLASSIFIER_EVALUATIONS = Table(
    "classifier_evaluations",
    METADATA,
    Column("id", BigInteger, Identity(always=True), primary_key=True),
    *_text("model", "prompt_version"),
    *_time("evaluated_at"),
    *_text("commits_sha256"),
    *_int("positives", "recalled", "others", "false_positives", "unanswered"),
    *_real("calibration_error", "agreement"),
    *_int("injected", "misled"),
    *_real("dollars_per_thousand"),
)

BLOBS = Table(
    "blobs",
    METADATA,
    *_text("sha256", key=True),
    *_text("kind"),
    *_big("bytes"),
    Column("content", LargeBinary, nullable=False),
    *_time("created_at"),
)

LOGS = Table(
    "logs",
    METADATA,
    *_text("stage", "month", "item", key=True),
    *_int("attempt", key=True),
    *_text("state", "run_id", "sha256"),
    *_time("written_at"),
)

REPOSITORIES = Table(
    "repositories",
    METADATA,
    *_text("month", key=True),
    *_big("id", key=True),
    *_text("node_id", "full_name"),
    *_json("aliases"),
    *_text("state", "default_branch"),
    *_int("stars"),
    *_text("language", "description"),
    *_int("size_kb"),
    *_text("config_path"),
    Column("archived_at", UtcTime),
)

LISTED_REPOSITORIES = Table(
    "listed_repositories",
    METADATA,
    *_text("full_name", key=True),
    *_text("verdict", "reason"),
    *_time("listed_at"),
)

MONTHS_GITHUB = Table("months_github", METADATA, *_int("id", key=True), *_text("host"), *_time("recorded_at"))

API_USAGE = Table(
    "api_usage",
    METADATA,
    *_text("run_id", "stage", "month", "resource", key=True),
    *_time("started_at", key=True),
    *_int("requests", "points", "unchanged", "retries", "limit_hits"),
    *_real("seconds", "waited_seconds"),
    *_big("bytes"),
)

SEARCH_GAPS = Table(
    "search_gaps",
    METADATA,
    *_text("month", "query", key=True),
    *(Column(name, Integer, nullable=False) for name in ("counted", "found")),
    *_bool("ran_out"),
)

HOOK_RESULTS = Table(
    "hook_results",
    METADATA,
    *_text("entity", "hook", "arguments", key=True),
    *_json("result"),
    *_time("created_at"),
)

INTAKE_COUNTS = Table(
    "intake_counts",
    METADATA,
    *_text("month", key=True),
    *_big("repository_id", key=True),
    *_text("repository"),
    *_int("reported", "stored"),
    *_text("checksum"),
    *_int("added", "changed", "removed"),
    *_json("unsearched"),
)

MERGED_PULL_REQUESTS = Table(
    "merged_pull_requests",
    METADATA,
    *_pull_request_key(),
    *_text("repository", "title", "body", "author"),
    *_json("labels"),
    *_time("created_at", "merged_at"),
    *_text("base_ref", "head_sha", "merge_commit_sha"),
    *_int("commit_count", "changed_files"),
    *_json("linked_issues"),
    *_text("source", "digest"),
)


CHANGES = Table(
    "changes",
    METADATA,
    *_pull_request_key(),
    *_text("merge_kind", "base_sha", "merge_tree_sha", "patch_sha256"),
    *_big("patch_bytes"),
    *_json("files"),
)


BUILD_ATTEMPTS = Table(
    "build_attempts",
    METADATA,
    *_pull_request_key(),
    *_int("attempt", key=True),
    *_text("run_id", "engine"),
    *_time("started_at"),
    *_real("seconds"),
    *_json("spec"),
    *_text("stage"),
    Column("rc", Integer),
    *_text("kind", "detail", "rule", "log_sha256"),
    *_text("rung", "agent", "made_in"),
    *_real("agent_seconds"),
    *_big("tokens_in", "tokens_out"),
    *_real("dollars"),
)

CONTEXTS = Table(
    "contexts",
    METADATA,
    *_text("context_id", key=True),
    *_big("repository_id"),
    *_text("repository", "base_sha"),
    *_time("created_at"),
    *_json("document"),
)

SURVEYS = Table(
    "surveys", METADATA, *_pull_request_key(), *_text("suite", key=True), *_text("inputs"), *_json("ruled_out")
)

CORRECTNESS_HISTORY = Table(
    "correctness_ever",
    METADATA,
    *_pull_request_key(),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    *_int("measurement"),
    *_json("document"),
)
MEASUREMENTS_HISTORY = Table(
    "measurements_ever",
    METADATA,
    *_pull_request_key(),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    *_json("document"),
)
