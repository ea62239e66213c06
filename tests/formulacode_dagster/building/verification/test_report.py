from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from formulacode_dagster.building.verification.report import (
    FAILURE,
    SUCCESS,
    Report,
    verification_reports,
    write_report,
)
from formulacode_dagster.building.verification.scan import Secret
from formulacode_dagster.building.verification.verifications import VERIFICATION_NAMES
from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.models.image import Verification

MADE = (
    Verification(name="declared_commit", ok=True, seconds=3.5, detail="HEAD is it"),
    Verification(name="imports", ok=False, seconds=1.0, rc=1, detail="no", log_tail="ends with the-value-of-it"),
)


def report(*, ok: bool) -> Report:
    return Report(
        task="acme__fast-5",
        base_commit="a" * 40,
        image="https://user:password@registry/x",
        image_digest="sha256:1",
        started_at=datetime(2026, 2, 1, tzinfo=UTC),
        seconds=4.5,
        ok=ok,
        gates=verification_reports(MADE),
    )


def test_every_gate_has_a_state_whether_it_was_reached_or_not(tmp_path: Path) -> None:
    path = write_report(tmp_path, report(ok=False), [])
    told = json.loads(path.read_text())
    assert [gate["name"] for gate in told["gates"]] == list(VERIFICATION_NAMES)
    assert [gate["state"] for gate in told["gates"]] == [
        "passed",
        "failed",
        *["not_reached"] * (len(VERIFICATION_NAMES) - 2),
    ]
    assert told["gates"][1] | {"rc": 1, "seconds": 1.0, "detail": "no"} == told["gates"][1]


def test_exactly_one_file_is_there_afterwards_and_nothing_half_written(tmp_path: Path) -> None:
    for ok, name in ((True, SUCCESS), (False, FAILURE), (False, FAILURE), (True, SUCCESS)):
        assert write_report(tmp_path, report(ok=ok), []) == tmp_path / name
        assert [path.name for path in tmp_path.iterdir()] == [name]


def test_no_secret_is_written(tmp_path: Path) -> None:
    text = write_report(tmp_path, report(ok=False), [Secret("API_KEY", b"the-value-of-it")]).read_text()
    assert "the-value-of-it" not in text
    assert "ends with [API_KEY]" in text
    assert "password" not in text


def test_a_link_in_the_place_of_the_file_is_replaced_and_not_followed(tmp_path: Path) -> None:
    folder, mine = tmp_path / "task", tmp_path / "mine"
    folder.mkdir()
    mine.write_text("untouched")
    (folder / FAILURE).symlink_to(mine)
    (folder / SUCCESS).symlink_to(mine)
    write_report(folder, report(ok=False), [])
    assert mine.read_text() == "untouched"
    assert [path.name for path in folder.iterdir()] == [FAILURE]


def test_a_folder_that_cannot_be_written_is_said_so(tmp_path: Path) -> None:
    (tmp_path / SUCCESS).mkdir()
    with pytest.raises(OutsideSystemError, match="cannot write"):
        write_report(tmp_path, report(ok=False), [])
    assert [path.name for path in tmp_path.iterdir()] == [SUCCESS]
