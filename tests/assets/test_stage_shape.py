"""Every asset of items is made by `run(stage, tools)` of a module `stage.py`, the only caller of the runner."""

from __future__ import annotations

import ast
import dataclasses
import importlib
import inspect
import typing
from pathlib import Path

import pytest

from assets.all import STAGE_ASSETS
from assets.monthly_report import monthly_report
from formulacode_dagster.operating.runner.runner import run_items
from formulacode_dagster.operating.runner.work import StageRun, StageSummary
from tests.support.documents import ROOT

PRODUCT = [
    path
    for folder in ("formulacode_dagster", "assets", "resources", "sandbox")
    for path in (ROOT / folder).rglob("*.py")
]
STAGES = sorted(path for path in PRODUCT if path.name == "stage.py")
MOST_PARAMETERS = 7


def _module(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


@pytest.mark.parametrize("path", STAGES, ids=_module)
def test_a_stage_takes_a_run_and_its_tools(path: Path) -> None:
    run = importlib.import_module(_module(path)).run
    assert inspect.iscoroutinefunction(run)
    hints = typing.get_type_hints(run)
    tools = hints.pop("tools")
    assert hints == {"stage": StageRun, "return": StageSummary}
    assert dataclasses.is_dataclass(tools)
    assert tools.__name__.endswith("Tools")


def test_every_asset_of_items_has_one() -> None:
    assets = [asset for asset in STAGE_ASSETS if asset is not monthly_report]
    imported = {
        node.module
        for asset in assets
        for node in ast.walk(ast.parse((ROOT / "assets" / f"{asset.stage.value}.py").read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.endswith(".stage")
    }
    assert imported == set(map(_module, STAGES))
    assert len(imported) == len(assets)


def test_nothing_else_calls_the_runner() -> None:
    callers = {path for path in PRODUCT if f"{run_items.__name__}(" in path.read_text(encoding="utf-8")}
    assert callers - set(STAGES) == {ROOT / "formulacode_dagster" / "operating" / "runner" / "runner.py"}


def test_the_runner_takes_few_parameters() -> None:
    assert len(inspect.signature(run_items).parameters) <= MOST_PARAMETERS
