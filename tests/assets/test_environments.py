"""Source distributions are built to learn their requirements: never next to timings on that machine."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from formulacode_dagster.building.engines.machines import Turn
from formulacode_dagster.building.planning.resolver import Resolver
from formulacode_dagster.models.items import RunOptions, Stage
from formulacode_dagster.operating.runner.progress import ProgressListener, listening
from formulacode_dagster.operating.runner.work import StageRun
from formulacode_dagster.operating.store.database import Database
from resources.containers import ContainersResource
from resources.mirrors import MirrorsResource
from resources.tools import environment_tools, image_tools

SECONDS = 20


class Noted(ProgressListener):
    def __init__(self) -> None:
        self.waits = threading.Event()

    def note(self, stage: Stage, text: str) -> None:
        if "waits until nothing is timed" in text:
            self.waits.set()


@pytest.mark.slow
@pytest.mark.parametrize(("stage", "tools_of"), [("environments", environment_tools), ("images", image_tools)])
def test_a_lock_that_builds_waits_until_nothing_is_timed_on_its_machine(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stage: str, tools_of: Callable[..., Any]
) -> None:
    monkeypatch.setenv("FC_HOME", str(tmp_path))
    monkeypatch.setenv("FC_ENGINE", "process")
    turns: list[Turn] = []

    class Kept(Resolver):
        def __init__(self, *given: Any, turn: Turn, **named: Any) -> None:
            turns.append(turn)
            super().__init__(*given, turn=turn, **named)

    monkeypatch.setattr("resources.containers.Resolver", Kept)
    run = StageRun(database, Stage(stage), "2026-02", "a run", RunOptions())
    containers = ContainersResource()
    tools_of(run, MirrorsResource(), containers)
    (turn,) = turns

    def build() -> None:
        with turn():
            assert told.waits.is_set()

    told = Noted()
    engine, _ = containers.chosen()
    with ThreadPoolExecutor() as pool, listening(told):
        with containers.machine(database, engine).timing():
            building = pool.submit(build)
            assert told.waits.wait(SECONDS)
            assert not building.done()
        building.result(SECONDS)
