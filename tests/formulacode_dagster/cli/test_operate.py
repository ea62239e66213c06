"""The command that a failed run names."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from formulacode_dagster.cli import operate
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.models.month import Month

LOSSES = [
    SimpleNamespace(stage=Stage.PULL_REQUESTS, state=ItemState.FAILED, examples=("a/b#1",)),
    SimpleNamespace(stage=Stage.GRADINGS, state=ItemState.REJECTED, examples=("a/b#2",)),
]


@pytest.mark.parametrize(
    ("stages", "command"),
    [
        ((), "fc-data why a/b#1"),
        ((Stage.GRADINGS,), "fc-data why a/b#2"),
        ((Stage.IMAGES,), "fc-data funnel --month 2026-01"),
    ],
)
def test_a_failed_run_names_an_item_that_its_stages_lost(
    monkeypatch: pytest.MonkeyPatch, stages: tuple[Stage, ...], command: str
) -> None:
    monkeypatch.setattr(operate, "read_funnel", lambda *_: SimpleNamespace(losses=LOSSES))
    store: Any = None
    assert operate._tells_more(store, [Month.parse("2026-01")], stages) == command
