"""Two concurrent runs of one month: the second is refused and names the first, the first continues."""

from __future__ import annotations

import pytest

from formulacode_dagster.models.items import ItemState, Stage

pytestmark = pytest.mark.slow


def test_the_second_run_of_a_month_is_refused_by_the_name_of_the_first(seeded) -> None:
    platform = seeded(Stage.REPOSITORIES, Stage.PULL_REQUESTS)
    with (
        platform.serve(hold=("model", 3)) as served,
        platform.started("run", "--month", "2026-02", "--stage", "classifications") as first,
    ):
        served.wait_until_held()
        second = platform.run(Stage.CLASSIFICATIONS)
        assert not second.succeeded
        second.tells(
            "failed: classifications: classifications of 2026-02 is being materialized by another run",
            "Wait for it or terminate it",
        )
        assert len(second.complaints) == 1
        served.release()
        said = platform.ended(first)
        assert said.succeeded, said.text
    assert platform.states(Stage.CLASSIFICATIONS) == {ItemState.DONE: 14, ItemState.REJECTED: 8}
    runs = {entry.run_id for entry in platform.entries(Stage.CLASSIFICATIONS).values()}
    assert len(runs) == 1
    assert runs.pop() in second.text
