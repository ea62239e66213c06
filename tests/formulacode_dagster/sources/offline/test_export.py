from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection

from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.models.intake import MergedWindow
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import IntakeCount, LinkedIssue, MergedPullRequest
from formulacode_dagster.models.repository import UNKNOWN_LANGUAGE, UNKNOWN_STARS, Repository, RepositoryState
from formulacode_dagster.operating.store.artifacts import INTAKE_COUNTS, REPOSITORIES
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.windows import checksum_of_month, save_windows
from formulacode_dagster.sources.offline.export import export_month
from formulacode_dagster.sources.offline.identity import derived_id
from tests.records import make_merged
from tests.support.offline import FEBRUARY, SHA, found, windows

ENDINGS = [".parquet", ".csv", ".jsonl"]
MOMENT = datetime(2026, 2, 3, 4, 5, 6, 789, tzinfo=UTC)


def repository(name: str, **other: object) -> Repository:
    given: dict[str, object] = {
        "month": FEBRUARY.key,
        "id": derived_id(name),
        "node_id": "",
        "full_name": name,
        "state": RepositoryState.ACTIVE,
        "stars": UNKNOWN_STARS,
        "language": UNKNOWN_LANGUAGE,
        "config_path": "",
    }
    return Repository.model_validate(given | other)


def row(of: Repository, number: int, **other: object) -> MergedPullRequest:
    given: dict[str, object] = {
        "month": FEBRUARY.key,
        "repository_id": of.id,
        "repository": of.full_name,
        "number": number,
        "created_at": MOMENT,
        "merged_at": MOMENT,
        "head_sha": SHA,
        "merge_commit_sha": SHA,
    }
    return make_merged(**given | other)


def window(of: Repository, *rows: MergedPullRequest) -> MergedWindow:
    count = IntakeCount(
        month=FEBRUARY.key, repository_id=of.id, repository=of.full_name, reported=len(rows), stored=len(rows)
    )
    return MergedWindow(rows, count)


def store(connection: Connection, *taken: MergedWindow, repositories: tuple[Repository, ...] = ()) -> str:
    REPOSITORIES.replace_month(connection, FEBRUARY.key, repositories)
    save_windows(connection, taken)
    return checksum_of_month(connection, FEBRUARY.key)


ISSUE = LinkedIssue(repository="a/b", number=3, title="Slow", body="so slow\n", author="x", created_at=MOMENT)
KNOWN = repository(
    "ada/engine", id=12, node_id="R_1", aliases=("ada/old",), stars=0, language="C", archived_at=MOMENT, size_kb=3
)
UNKNOWN = repository("bob/tool", state=RepositoryState.VANISHED)
EMPTY = repository("zoe/none", default_branch="trunk")
ROWS = (
    row(KNOWN, 1, body='a "quoted",\r\nbody\twith\u2028all\x85', labels=("a", "b,c"), linked_issues=(ISSUE,)),
    row(KNOWN, 2, author="x", head_sha="", commit_count=2**31 - 1, changed_files=7),
)


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_month_that_is_exported_and_taken_in_again_is_the_same_month(database: Database, tmp_path: Path, ending):
    rows = (KNOWN, UNKNOWN, EMPTY)
    taken = (window(KNOWN, *ROWS), window(UNKNOWN, row(UNKNOWN, 9)), window(EMPTY))
    with database.transaction() as connection:
        before = store(connection, *taken, repositories=rows)
        written = export_month(connection, FEBRUARY, tmp_path / "out", ending)
    assert {path.name: count for path, count in written.items()} == {
        f"repositories{ending}": 3,
        f"pull_requests{ending}": 3,
        f"counts{ending}": 3,
    }
    again, back = found(tmp_path / "out"), windows(tmp_path / "out")
    assert again == rows
    assert [entry.pull_requests for entry in back.values()] == [entry.pull_requests for entry in taken]
    with database.transaction() as connection:
        assert store(connection, *back.values(), repositories=again) == before
        changed = [(count.added, count.changed, count.removed) for count in INTAKE_COUNTS.read(connection, "2026-02")]
    assert changed == [(0, 0, 0)] * 3


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_text_survives_the_way_out_and_back(database: Database, tmp_path_factory, data, ending):
    text = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\x00"), max_size=30)
    one = row(
        KNOWN,
        data.draw(st.integers(1, 2**31 - 1)),
        title=data.draw(text.filter(bool)),
        body=data.draw(text),
        author=data.draw(text),
        labels=tuple(data.draw(st.lists(text, max_size=3))),
    )
    folder = tmp_path_factory.mktemp("out")
    with database.transaction() as connection:
        store(connection, window(KNOWN, one), repositories=(KNOWN,))
        export_month(connection, FEBRUARY, folder, ending)
    assert windows(folder)["ada/engine"].pull_requests == (one,)


def test_a_month_of_which_nothing_is_known_is_not_exported(database: Database, tmp_path: Path):
    with database.transaction() as connection, pytest.raises(ConfigurationError, match="no data on 2020-01"):
        export_month(connection, Month.parse("2020-01"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_files_that_are_there_are_not_overwritten(database: Database, tmp_path: Path):
    (tmp_path / "counts.csv").write_text("mine")
    with database.transaction() as connection:
        store(connection, repositories=(KNOWN,))
        with pytest.raises(ConfigurationError, match=r"counts\.csv is there already"):
            export_month(connection, FEBRUARY, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["counts.csv"]


def test_a_folder_that_cannot_be_made_is_named(database: Database, tmp_path: Path):
    (tmp_path / "file").write_text("x")
    with database.transaction() as connection:
        store(connection, repositories=(KNOWN,))
        with pytest.raises(OutsideSystemError, match="cannot write to"):
            export_month(connection, FEBRUARY, tmp_path / "file")
