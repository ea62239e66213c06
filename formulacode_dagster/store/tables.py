"""The tables as SQLAlchemy sees them. `sql/migrations/` creates them; a test holds the two together."""

from __future__ import annotations

from sqlalchemy import BigInteger, Boolean, Column, Double, Integer, LargeBinary, MetaData, Table

from .column_types import StorableJson, StorableText, UtcTime

METADATA = MetaData()


def _text(*names: str, key: bool = False) -> list[Column[str]]:
    return [Column(name, StorableText, primary_key=key, nullable=False) for name in names]


def _json(*names: str) -> list[Column[object]]:
    return [Column(name, StorableJson, nullable=False) for name in names]


def _time(*names: str) -> list[Column[object]]:
    return [Column(name, UtcTime, nullable=False) for name in names]


def _pull_request_key() -> list[Column[object]]:
    return [
        Column("month", StorableText, primary_key=True),
        Column("repository_id", BigInteger, primary_key=True, autoincrement=False),
        Column("number", Integer, primary_key=True, autoincrement=False),
    ]


LEDGER = Table(
    "ledger",
    METADATA,
    *_text("stage", "month", "item", key=True),
    *_text("state", "reason", "detail", "log_tail"),
    Column("attempt", Integer, nullable=False),
    *_text("run_id", "inputs"),
    *_json("cost"),
    *_time("finished_at"),
)

CHECK_VERDICTS = Table(
    "check_verdicts",
    METADATA,
    *_text("stage", "month", "check_name", key=True),
    Column("passed", Boolean, nullable=False),
    Column("blocking", Boolean, nullable=False),
    *_text("summary"),
    *_json("offenders", "figures", "tally"),
    *_text("run_id"),
    *_time("judged_at"),
)

ACCEPTANCES = Table(
    "acceptances",
    METADATA,
    *_text("month", "stage", key=True),
    Column("accepted_at", UtcTime, primary_key=True),
    *_text("accepted_by", "reason", "summary"),
    Column("failed", Integer, nullable=False),
    Column("done", Integer, nullable=False),
)

COMPLETIONS = Table(
    "completions",
    METADATA,
    *_text("key", key=True),
    *_text("model", "content"),
    Column("tokens_in", Integer, nullable=False),
    Column("tokens_out", Integer, nullable=False),
    Column("dollars", Double, nullable=False),
    *_time("created_at"),
)

BLOBS = Table(
    "blobs",
    METADATA,
    *_text("sha256", key=True),
    *_text("kind"),
    Column("bytes", BigInteger, nullable=False),
    Column("content", LargeBinary, nullable=False),
    *_time("created_at"),
)

LOGS = Table(
    "logs",
    METADATA,
    *_text("stage", "month", "item", key=True),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    *_text("state", "run_id", "sha256"),
    *_time("written_at"),
)

REPOSITORIES = Table(
    "repositories",
    METADATA,
    *_text("month", key=True),
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    *_text("node_id", "full_name"),
    *_json("aliases"),
    *_text("state", "default_branch"),
    Column("stars", Integer, nullable=False),
    *_text("language", "description"),
    Column("size_kb", Integer, nullable=False),
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

API_USAGE = Table(
    "api_usage",
    METADATA,
    *_text("run_id", "stage", "month", "resource", key=True),
    Column("started_at", UtcTime, primary_key=True),
    *(Column(name, Integer, nullable=False) for name in ("requests", "points", "unchanged", "retries", "limit_hits")),
    Column("seconds", Double, nullable=False),
    Column("waited_seconds", Double, nullable=False),
    Column("bytes", BigInteger, nullable=False),
)

SEARCH_GAPS = Table(
    "search_gaps",
    METADATA,
    *_text("month", "query", key=True),
    *(Column(name, Integer, nullable=False) for name in ("counted", "found")),
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
    Column("repository_id", BigInteger, primary_key=True, autoincrement=False),
    *_text("repository"),
    Column("reported", Integer, nullable=False),
    Column("stored", Integer, nullable=False),
    *_text("checksum"),
    *(Column(name, Integer, nullable=False) for name in ("added", "changed", "removed")),
)

MERGED_PULL_REQUESTS = Table(
    "merged_pull_requests",
    METADATA,
    *_pull_request_key(),
    *_text("repository", "title", "body", "author"),
    *_json("labels"),
    *_time("created_at", "merged_at"),
    *_text("base_ref", "head_sha", "merge_commit_sha"),
    Column("commit_count", Integer, nullable=False),
    Column("changed_files", Integer, nullable=False),
    *_json("linked_issues"),
    *_text("digest"),
)

CHANGES = Table(
    "changes",
    METADATA,
    *_pull_request_key(),
    *_text("merge_kind", "base_sha", "merge_tree_sha", "patch_sha256"),
    Column("patch_bytes", BigInteger, nullable=False),
    *_json("files"),
)

CLASSIFICATIONS = Table(
    "classifications",
    METADATA,
    *_pull_request_key(),
    Column("is_performance", Boolean, nullable=False),
    *_text("category", "difficulty"),
    Column("confidence", Double, nullable=False),
    *_text("reason", "model", "prompt_version"),
    Column("patch_truncated", Boolean, nullable=False),
)

PROBLEM_STATEMENTS = Table(
    "problem_statements",
    METADATA,
    *_pull_request_key(),
    *_text("text"),
    *_json("issues"),
    Column("withheld_lines", Integer, nullable=False),
    *_text("template_version"),
    Column("walk", StorableJson),
)

ENVIRONMENTS = Table("environment_documents", METADATA, *_pull_request_key(), *_json("document"))
IMAGES = Table("image_documents", METADATA, *_pull_request_key(), *_json("document"))

BUILD_ATTEMPTS = Table(
    "build_attempts",
    METADATA,
    *_pull_request_key(),
    Column("attempt", Integer, primary_key=True, autoincrement=False),
    *_text("run_id", "engine"),
    *_time("started_at"),
    Column("seconds", Double, nullable=False),
    *_json("spec"),
    *_text("stage"),
    Column("rc", Integer),
    *_text("kind", "detail", "rule", "log_sha256"),
)

REPRODUCTIONS = Table("reproduction_documents", METADATA, *_pull_request_key(), *_json("document"))
MEASUREMENTS = Table("measurement_documents", METADATA, *_pull_request_key(), *_json("document"))
PUBLISHED_IMAGES = Table("published_image_documents", METADATA, *_pull_request_key(), *_json("document"))
RELEASES = Table("release_documents", METADATA, *_text("month", key=True), *_json("document"))
