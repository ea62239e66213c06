"""A running month continues with its old code: a migration meanwhile only adds, and unused objects go later."""

from __future__ import annotations

import re

import pytest

from formulacode_dagster.operating.store.migrations import read_migrations

CONTRACTING = "_contract_"
"""In the name of a migration that takes something away, which no month at work may use any more."""
BEFORE_THE_RULE = frozenset(
    {"0006_check_verdicts.sql", "0007_documents.sql", "0011_revisions.sql", "0012_statements.sql"}
)
TAKES_AWAY = re.compile(
    r"\bDROP\s+(?:TABLE|COLUMN|SCHEMA)\b|\bRENAME\b|\bALTER\s+COLUMN\s+\w+\s+(?:TYPE|SET\s+DATA|SET\s+NOT\s+NULL|DROP\s+DEFAULT)"
    r"|\bADD\s+COLUMN\s+(?:(?!\bDEFAULT\b)[^,;])*\bNOT\s+NULL\b(?![^,;]*\bDEFAULT\b)",
    re.IGNORECASE,
)


def test_a_migration_takes_nothing_away_unless_its_name_says_so() -> None:
    taking = {migration.name for migration in read_migrations() if TAKES_AWAY.search(migration.sql)}
    assert {name for name in taking if CONTRACTING not in name} == BEFORE_THE_RULE


@pytest.mark.parametrize(
    ("sql", "takes_away"),
    [
        ("ALTER TABLE images DROP COLUMN digest;", True),
        ("ALTER TABLE images RENAME TO pictures;", True),
        ("ALTER TABLE images ALTER COLUMN number TYPE bigint;", True),
        ("ALTER TABLE images ADD COLUMN platform text NOT NULL;", True),
        ("ALTER TABLE images ADD COLUMN platform text NOT NULL DEFAULT 'linux';", False),
        ("ALTER TABLE images ADD COLUMN platform text DEFAULT 'linux' NOT NULL, ADD COLUMN size bigint;", False),
        ("CREATE TABLE pictures (name text NOT NULL); CREATE INDEX ON pictures (name);", False),
        ("DROP INDEX images_by_month;", False),
    ],
)
def test_what_old_code_could_not_go_on_with_is_told(sql: str, takes_away: bool) -> None:
    assert bool(TAKES_AWAY.search(sql)) is takes_away
