from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from formulacode_dagster.models.month import Month
from formulacode_dagster.models.release import TaskRecord
from formulacode_dagster.releasing.dataset.destination import Destination
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from formulacode_dagster.releasing.dataset.hub import HubDestination
from formulacode_dagster.releasing.dataset.plan import plan
from sandbox.hub import app
from sandbox.server import serving
from tests.support.release import tables_of

JANUARY, FEBRUARY = Month.parse("2026-01"), Month.parse("2026-02")


@pytest.fixture(params=["folder", "hub"])
def destination(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Destination]:
    if request.param == "folder":
        yield FolderDestination(tmp_path)
        return
    with serving(app(tmp_path)) as url:
        yield HubDestination("acme/tasks", url, "hf_token")


@pytest.mark.slow
def test_what_is_planned_is_what_a_release_then_writes(
    destination: Destination, record: Callable[..., TaskRecord]
) -> None:
    tables = tables_of([record(1), record(2)])
    for month, tag in ((JANUARY, "formulacode@2026-02"), (FEBRUARY, "formulacode@2026-03")):
        planned = plan(destination, month, tables)
        assert (planned.tag, planned.tasks, planned.difference) == (tag, 2, "")
        assert tag not in destination.tags()
        destination.release(month, tables)
        written = {path: len(content) for path in planned.files if (content := destination.content(path, tag))}
        assert written == planned.files
        assert plan(destination, month, tables).text.startswith(f"nothing would change: {tag}")


@pytest.mark.slow
def test_a_revision_is_planned_with_its_difference_and_asks_for_a_reason(
    destination: Destination, record: Callable[..., TaskRecord]
) -> None:
    destination.release(FEBRUARY, tables_of([record(1), record(2)]))
    fewer = tables_of([record(1)])
    planned = plan(destination, FEBRUARY, fewer)
    assert (planned.tag, planned.needs_reason) == ("formulacode@2026-03.1", True)
    assert planned.difference == "1 no longer there: acme__fast-2"
    assert "samples/2026-02.parquet" not in planned.files
    with_reason = plan(destination, FEBRUARY, fewer, correction="it was wrong")
    assert not with_reason.needs_reason
    destination.release(FEBRUARY, fewer, correction="it was wrong")
    assert plan(destination, FEBRUARY, fewer).tag == "formulacode@2026-03.1"
