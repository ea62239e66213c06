from __future__ import annotations

import os
import re
import ssl
from pathlib import Path

import pytest

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.items import Stage
from resources.documentation import SETTINGS, env_example, settings_table
from resources.environment import load_env_file, trust_system_certificates
from resources.setting_types import EngineChoice
from resources.settings import read_settings

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for setting in SETTINGS:
        monkeypatch.delenv(setting.name, raising=False)


def test_env_example_is_written_from_the_model() -> None:
    assert (ROOT / ".env.example").read_text() == env_example(), "write it anew: make settings"


def test_env_example_with_its_lines_uncommented_holds_the_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    defaults = read_settings()
    for name, value in re.findall(r"^#([A-Z_]+)=(.*)$", env_example(), flags=re.MULTILINE):
        monkeypatch.setenv(name, value)
    assert read_settings() == defaults


def test_the_table_has_a_row_for_every_setting_and_no_bar_within_a_cell() -> None:
    head, rule, *rows = settings_table().splitlines()
    assert [row.split("|")[1].strip(" `") for row in rows] == [setting.name for setting in SETTINGS]
    assert {row.count("|") for row in (head, rule, *rows)} == {4}


def test_values_have_their_types_and_an_empty_one_stands_for_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = {
        "FC_CPUS": "1.5",
        "FC_MEASUREMENT_CONCURRENCY": "9",
        "FC_ENGINE": "docker",
        "FC_LANGUAGES": " C, Rust ,",
        "LLM_SECONDS": "",
    }
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = read_settings()
    assert (settings.cpus, settings.measurement_concurrency, settings.llm_seconds) == (1.5, 9, 120)
    assert (settings.engine, settings.languages) == (EngineChoice.docker, ("C", "Rust"))
    assert (settings.home, settings.mirrors_root) == (tmp_path / ".formulacode", tmp_path / ".formulacode" / "mirrors")
    assert settings.llm_dollars_per_month is None


def test_the_failure_budget_is_a_share_with_exceptions_by_stage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert read_settings().failure_budget_of(Stage.CLASSIFICATIONS) == 0.1
    assert read_settings().failure_budget_of(Stage.IMAGES) == 0.4
    monkeypatch.setenv("FC_FAILURE_BUDGET", "images = 0.5, 0")
    budgets = [read_settings().failure_budget_of(stage) for stage in (Stage.IMAGES, Stage.ENVIRONMENTS)]
    assert budgets == [0.5, 0]
    monkeypatch.setenv("FC_FAILURE_BUDGET", "images=0.5")
    assert read_settings().failure_budget_of(Stage.ENVIRONMENTS) == 0


@pytest.mark.parametrize("budget", ["1.5", "-0.1", "some", "pictures=0.1", "images=", "nan"])
def test_a_failure_budget_that_cannot_be_is_named(budget: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FC_FAILURE_BUDGET", budget)
    with pytest.raises(ConfigurationError, match=r"Write a text such as 0\.1,images=0\.4 for FC_FAILURE_BUDGET"):
        read_settings()


@pytest.mark.parametrize("pools", ["images=2", "build", "build=0", "build=two", "measure=1001"])
def test_a_limit_of_a_pool_that_cannot_be_is_named(pools: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FC_POOLS", pools)
    with pytest.raises(ConfigurationError, match="Write a text such as build=2,measure=2 for FC_POOLS"):
        read_settings()


def test_what_is_given_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FC_MEASUREMENT_CONCURRENCY", "9")
    assert read_settings({"measurement_concurrency": 8}).measurement_concurrency == 8


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("FC_MEASUREMENT_CONCURRENCY", "seven", "Write a whole number, 1 or more for FC_MEASUREMENT_CONCURRENCY"),
        ("FC_MEASUREMENT_CONCURRENCY", "0", "Write a whole number, 1 or more for FC_MEASUREMENT_CONCURRENCY"),
        ("FC_MEASUREMENT_CONCURRENCY", "7.5", "Write a whole number, 1 or more for FC_MEASUREMENT_CONCURRENCY"),
        ("FC_CPUS", "nan", "Write a number above 0 for FC_CPUS"),
        ("FC_IMAGES_GB", "inf", "Write a number, 0 or more for FC_IMAGES_GB"),
        ("LLM_DOLLARS_PER_MONTH", "few", "Write a number, 0 or more for LLM_DOLLARS_PER_MONTH"),
        ("FC_ENGINE", "podman", "Write docker, process or auto for FC_ENGINE"),
        ("FC_REGISTRY_MODE", "both", "Write single or mirror for FC_REGISTRY_MODE"),
    ],
)
def test_a_value_that_cannot_be_is_told_with_its_setting_and_what_to_write(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, remedy: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError) as caught:
        read_settings()
    assert str(caught.value) == f"{name} is {value!r}. {remedy}"


def test_all_that_cannot_be_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FC_MEASUREMENT_CONCURRENCY", "0")
    monkeypatch.setenv("FC_MEMORY_MB", "255")
    with pytest.raises(
        ConfigurationError, match=r"FC_MEMORY_MB is '255'; FC_MEASUREMENT_CONCURRENCY is '0'\..*256 or more.*1 or more"
    ):
        read_settings()


def test_a_malformed_env_file_names_its_line(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("GOOD=1\nBAD='unclosed\n")
    with pytest.raises(ConfigurationError, match="line 2 cannot be read"):
        load_env_file(tmp_path / ".env")


def test_the_environment_wins_over_the_env_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FC_MEASUREMENT_CONCURRENCY", "9")
    # so that it is taken away again
    monkeypatch.setenv("FC_CPUS", "")
    monkeypatch.delenv("FC_CPUS")
    (tmp_path / ".env").write_text("FC_MEASUREMENT_CONCURRENCY=7\nFC_CPUS=1\n")
    monkeypatch.chdir(tmp_path)
    settings = read_settings()
    assert (settings.measurement_concurrency, settings.cpus, os.environ["FC_CPUS"]) == (9, 1, "1")


def test_system_certificates_are_trusted_unless_others_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.setenv(name, "/chosen")
        trust_system_certificates()
        assert os.environ[name] == "/chosen"
        monkeypatch.delenv(name)
    trust_system_certificates()
    assert ssl.create_default_context(cafile=os.environ["SSL_CERT_FILE"]).get_ca_certs()


def test_a_former_name_is_read_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("FC_MEASUREMENT_CONCURRENCY", raising=False)
    monkeypatch.setenv("FC_MEASURED_AT_ONCE", "3")
    assert read_settings().measurement_concurrency == 3
    assert "FC_MEASURED_AT_ONCE is now called FC_MEASUREMENT_CONCURRENCY" in caplog.text
    monkeypatch.setenv("FC_MEASURED_AT_ONCE", "5")
    assert read_settings().measurement_concurrency == 3
