"""A release that somebody changed in place is neither read nor verified."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from formulacode_dagster.cli.app import app as fc_data
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.release import Release, TaskRecord
from formulacode_dagster.operating.store.artifacts import RELEASES
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from formulacode_dagster.releasing.dataset.hub import HubDestination
from formulacode_dagster.releasing.dataset.integrity import verify_releases
from formulacode_dagster.releasing.dataset.parquet import to_parquet
from sandbox.hub import app
from sandbox.server import serving
from tests.support.release import tables_of

MakeRecord = Callable[..., TaskRecord]
FEBRUARY = Month.parse("2026-02")


@pytest.fixture
def released(tmp_path: Path, record: MakeRecord) -> tuple[FolderDestination, Release, Path]:
    """A released month in a folder, and the file of its tasks."""
    destination = FolderDestination(tmp_path / "dataset")
    found = destination.release(FEBRUARY, tables_of([record(1)]))
    return destination, found, tmp_path / "dataset" / "releases" / found.tag / "data" / "2026-02.parquet"


def test_a_parquet_changed_in_place_is_not_read(
    released: tuple[FolderDestination, Release, Path], record: MakeRecord
) -> None:
    destination, found, file = released
    read = destination.read(FEBRUARY)
    assert read is not None
    assert read.tag == found.tag
    file.write_bytes(to_parquet(tables_of([record(1, speedup=99.0)]).tasks))
    for attempt in (
        lambda: destination.read(FEBRUARY),
        lambda: destination.content("data/2026-02.parquet", found.tag),
        lambda: destination.release(FEBRUARY, tables_of([record(1)])),
    ):
        with pytest.raises(ItemFailure, match=r"2026-02\.parquet is not the file that was released") as caught:
            attempt()
        assert caught.value.kind == "unreadable"
    file.unlink()
    with pytest.raises(ItemFailure, match="is not there"):
        destination.read(FEBRUARY)


def test_a_file_that_was_added_to_a_release_is_not_read(released: tuple[FolderDestination, Release, Path]) -> None:
    destination, found, file = released
    file.with_name("more.parquet").write_bytes(b"more")
    with pytest.raises(ItemFailure, match="the manifest does not list it"):
        destination.content("data/more.parquet", found.tag)


def test_verification_finds_a_release_whose_manifest_was_changed_too(
    released: tuple[FolderDestination, Release, Path], record: MakeRecord, tmp_path: Path
) -> None:
    destination, found, _ = released
    assert verify_releases([found], destination).passed
    # by the same program, with other rows
    forged = FolderDestination(tmp_path / "forged")
    forged.release(FEBRUARY, tables_of([record(1, speedup=99.0)]))
    finding = verify_releases([found], forged)
    assert not finding.passed
    assert [offender.partition(", it was")[0].partition(" points to")[0] for offender in finding.offenders] == [
        found.tag,
        f"{found.tag} has other rows than were written",
    ]
    assert not verify_releases([found], FolderDestination(tmp_path / "empty")).passed


def test_verification_reads_the_hub(tmp_path: Path, record: MakeRecord) -> None:
    with serving(app(tmp_path / "hub", tokens=frozenset({"hf_t"}))) as url:
        destination = HubDestination("acme/verified", url, "hf_t")
        found = destination.release(FEBRUARY, tables_of([record(1)]))
        assert verify_releases([found], destination).passed
        other = found.model_copy(update={"rows_sha256": "0" * 64})
        assert verify_releases([other], destination).offenders == (f"{found.tag} has other rows than were written",)


def test_the_command_verifies_each_of_two_places_with_the_same_tag(
    released: tuple[FolderDestination, Release, Path],
    record: MakeRecord,
    database: Database,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    second = FolderDestination(tmp_path / "second")
    made = [released[1], second.release(FEBRUARY, tables_of([record(1), record(2)]))]
    for release in made:
        with database.transaction() as connection:
            RELEASES.save(connection, [release])
    for destination in (released[0], second):
        answer = CliRunner().invoke(fc_data, ["release", "verify", "--from", destination.name], catch_exceptions=False)
        assert answer.output.startswith("1 releases at"), answer.output


def test_the_command_verifies_what_the_database_records(
    released: tuple[FolderDestination, Release, Path],
    database: Database,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    destination, found, file = released
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    monkeypatch.delenv("HF_DATASET", raising=False)
    verify = ["release", "verify", "--from", destination.name]
    with pytest.raises(ConfigurationError, match="no release is recorded"):
        CliRunner().invoke(fc_data, verify, catch_exceptions=False)
    with database.transaction() as connection:
        RELEASES.save(connection, [found])
    answer = CliRunner().invoke(fc_data, [*verify, "--month", "2026-02"])
    assert (answer.exit_code, "are as they were written" in answer.output) == (0, True), answer.output
    file.write_bytes(b"PAR1")
    answer = CliRunner().invoke(fc_data, verify)
    assert answer.exit_code == 1
    assert "is not the file that was released" in " ".join(answer.output.split())
    with pytest.raises(ConfigurationError, match="HF_DATASET is empty"):
        CliRunner().invoke(fc_data, ["release", "verify", "--from", "hub"], catch_exceptions=False)
