"""What is built by hand keeps off timings as a month's builds do."""

from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.library import Synthesizer, synthesizer
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.operating.store.database import Database
from resources.containers import ContainersResource
from tests.records import KEY, MONTH, make_merged, make_pull_request


def test_what_is_built_by_hand_takes_the_turn_of_builds(
    database: Database, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Asked(Exception):
        """Says with what."""

    def builds(*given: object) -> None:
        raise Asked(given[-1])

    monkeypatch.setenv("FC_ENGINE", "process")
    monkeypatch.setenv("FC_HOME", str(tmp_path))
    monkeypatch.setattr(synthesizer, "TaskBuilds", builds)
    by_hand = Synthesizer(agent="none", database=database)
    pr, environment = make_pull_request(make_merged(month=MONTH)), Environment.model_construct(**KEY)
    with pytest.raises(Asked) as caught:
        by_hand._built(database, pr, environment, force=False)
    (turn,) = caught.value.args
    with turn(), database.share("asks") as is_held:
        store = ContainersResource().engine_for(database, MONTH)[0].store
        assert is_held(f"building on {store}")
