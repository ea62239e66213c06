"""The source for a setting, and its effect on the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.cli.operate import check_systems
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.items import Stage
from formulacode_dagster.orchestration.build import build_definitions
from formulacode_dagster.sources.github.source import GitHubSource
from formulacode_dagster.sources.offline.files import FilesSource
from formulacode_dagster.sources.offline.mirrors import MirrorsSource
from resources.documentation import SETTINGS
from resources.intake import IntakeResource
from resources.mirrors import MirrorsResource, clone_url
from resources.probes import Health
from resources.settings import read_settings
from tests.support.git_world import BareRepository


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for setting in SETTINGS:
        monkeypatch.delenv(setting.name, raising=False)
    monkeypatch.setenv("FC_HOME", str(tmp_path / "home"))


@pytest.fixture
def mirrors(tmp_path: Path) -> Path:
    folder = tmp_path / "mirrors"
    BareRepository(folder / "ada/engine.git").write()
    return folder


def source() -> object:
    return IntakeResource().source(Stage.REPOSITORIES, "2026-02", "run")


def test_without_the_setting_github_is_asked() -> None:
    assert isinstance(source(), GitHubSource)
    assert IntakeResource().state() == ""


def test_a_folder_of_mirrors_is_taken_in_and_cloned_from(mirrors: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FC_OFFLINE_SOURCE", str(mirrors))
    assert isinstance(source(), MirrorsSource)
    assert clone_url(MirrorsResource().settings) == clone_url(IntakeResource().settings) == mirrors.as_uri()
    monkeypatch.setenv("GITHUB_CLONE_URL", "https://example.org")
    assert clone_url(MirrorsResource().settings) == "https://example.org"


def test_files_are_taken_in_and_clones_come_from_where_they_always_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "repositories.csv").write_text("full_name\nada/engine\n")
    monkeypatch.setenv("FC_OFFLINE_SOURCE", str(tmp_path / "repositories.csv"))
    assert isinstance(source(), FilesSource)
    assert clone_url(read_settings()) == "https://github.com"


def test_a_missing_source_is_reported_on_use_and_not_on_load(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FC_OFFLINE_SOURCE", "/no/such/folder")
    build_definitions()
    with pytest.raises(ConfigurationError, match=r"offline source /no/such/folder is not there.*offline schema"):
        source()


@pytest.mark.slow
def test_preflight_needs_no_token_offline(mirrors: Path, monkeypatch: pytest.MonkeyPatch, database_url: str) -> None:
    monkeypatch.setenv("FC_DATABASE_URL", database_url)
    monkeypatch.setenv("FC_ENGINE", "process")
    monkeypatch.setenv("FC_OFFLINE_SOURCE", str(mirrors))
    (finding,) = [finding for finding in check_systems() if finding.system == "github"]
    assert (finding.health, finding.text) == (
        Health.OK,
        f"the folder of mirrors {mirrors}; GitHub is not asked, GH_TOKENS is not needed",
    )
    monkeypatch.setenv("FC_OFFLINE_SOURCE", "/no/such/folder")
    (finding,) = [finding for finding in check_systems() if finding.system == "github"]
    assert finding.health is Health.BROKEN
