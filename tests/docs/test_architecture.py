"""`make house` fails when the page, the contract or the packages are out of step."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.documents import ROOT


@pytest.fixture
def architecture() -> ModuleType:
    spec = importlib.util.spec_from_file_location("architecture", ROOT / "docs" / "hooks" / "architecture.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_page_shows_the_code(architecture: ModuleType) -> None:
    assert architecture.PAGE.read_text(encoding="utf-8") == architecture.render()


def test_a_stale_page_fails_and_says_how_to_write_it(
    architecture: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stale = tmp_path / "architecture.md"
    stale.write_text("# Architecture\n")
    assert architecture.main(["--check"], page=stale) == 1
    assert "make architecture" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("bands", "rooms", "named"),
    [
        ([["formulacode_dagster.models"]], {}, "formulacode_dagster.building"),
        (None, {"formulacode_dagster.attic": []}, "attic"),
    ],
)
def test_a_band_outside_the_contract_is_named(
    architecture: ModuleType, bands: list[list[str]] | None, rooms: dict[str, list[str]], named: str
) -> None:
    whole = [
        [f"formulacode_dagster.{path.parent.name}"] for path in (ROOT / "formulacode_dagster").glob("*/__init__.py")
    ]
    with pytest.raises(ValueError, match=named):
        architecture.require_all(bands or whole, rooms)
