"""A machine is lost in the middle of a month: its backup is restored on an empty one, which does what was left."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from formulacode_dagster.models.items import ItemState, Stage
from tests.end_to_end.failures.platform_of_a_test import Platform
from tests.end_to_end.failures.test_kill import (
    HALF_MAY_FAIL,
    MONTH,
    expected,
    finished,
    kill_in,
    outcomes,
    processes_of,
)
from tests.support.sampling import TAKES_MINUTES

REPOSITORY = "signal-kit/rollwin"

pytestmark = [
    pytest.mark.slow,
    TAKES_MINUTES,
    pytest.mark.timeout(900),
]


@pytest.fixture
def empty_platform(own_platform: Platform, tmp_path: Path) -> Iterator[Platform]:
    """Another machine: nothing is in its home yet, its embedded Postgres included."""
    platform = Platform(tmp_path / "second" / "home", {}, own_platform.samples, own_platform.instance)
    yield platform
    platform.close()
    shutil.rmtree(platform.home, ignore_errors=True)


def test_a_half_done_month_continues_after_a_restore(
    own_platform: Platform, empty_platform: Platform, tmp_path: Path
) -> None:
    first, second = own_platform, empty_platform
    first.settings |= HALF_MAY_FAIL
    first.database.migrate()
    backups = tmp_path / "backups"
    with first.serve(folder=first.folder_of(REPOSITORY)) as served:
        kill_in(first, Stage.MEASUREMENTS)
        first.wait_for(lambda: not processes_of(first.home), "the end of what the run had started")
        said = first.fc_data("backup", str(backups))
        assert said.succeeded, said.text
        before, asked = finished(first.ledger()), served.calls("model")
        assert {stage for stage, _ in before} >= {Stage.CLASSIFICATIONS, Stage.IMAGES}
        measured = {item for stage, item in before if stage is Stage.MEASUREMENTS}
        first.close()
        shutil.rmtree(first.home / "builds")

        second.settings = dict(first.settings)
        (backup,) = backups.iterdir()
        said = second.fc_data("restore", str(backup))
        assert said.succeeded, said.text
        assert finished(second.ledger()) == before
        said = second.fc_data("run", "--month", MONTH)
        assert said.succeeded, said.text
        assert served.calls("model") == asked, "what was paid for is not asked again"
    after = finished(second.ledger())
    again = {key for key, end in before.items() if after[key] != end}
    built = {item for item, entry in second.entries(Stage.IMAGES).items() if entry.state is ItemState.DONE}
    assert again == {(Stage.IMAGES, item) for item in built - measured}, "images that went with the machine, no more"
    ends = {item: end for item, end in expected().items() if item.startswith(f"{REPOSITORY}#")}
    assert {item: end for item, end in outcomes(second).items() if item in ends} == ends
