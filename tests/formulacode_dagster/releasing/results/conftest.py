"""A release with one task that can be exported."""

from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.models.month import Month
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from tests.support.agent_runs import MONTH, released_row
from tests.support.release import tables_of


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    """The folder of a dataset with one release."""
    FolderDestination(tmp_path / "dataset").release(Month.parse(MONTH), tables_of([released_row()]))
    return tmp_path / "dataset"
