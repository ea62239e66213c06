"""What each resource makes of its settings: the client it hands out, and the error that names the setting."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from formulacode_dagster.cli.operate import resolved
from formulacode_dagster.engines.docker.uv_runner import DockerUvRunner
from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.release.folder import FolderDestination
from formulacode_dagster.release.hub import HubDestination
from resources.defaults import default_resources
from resources.settings import SETTINGS, make_home
from sandbox.model.app import app as model
from sandbox.server import serving


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for one in SETTINGS:
        monkeypatch.delenv(one.name, raising=False)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("FC_HOME", str(tmp_path / "home"))


def test_no_secret_is_part_of_a_resource_that_is_not_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    for one in SETTINGS:
        if one.secret:
            monkeypatch.setenv(one.name, "a-secret")
    for name, resource in default_resources().items():
        values = [getattr(resource, field) for field in type(resource).model_fields]
        assert not [value for value in values if value == "a-secret" and not isinstance(value, dg.EnvVar)], name


def test_a_resolved_resource_has_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GH_TOKENS", "one, two ,")
    github = resolved("github")
    assert (github.tokens, github.url) == ("one, two ,", "https://api.github.com")
    assert [state.name for state in github.client("repositories").tokens()] != []


def test_the_rules_of_tracking_are_those_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = resolved("tracking").rules()
    assert rules.minimum_stars == 500
    assert {"Python", "C++", "Jupyter Notebook"} < set(rules.languages)
    monkeypatch.setenv("FC_LANGUAGES", " Cython, Rust ,")
    monkeypatch.setenv("FC_MINIMUM_STARS", "0")
    rules = resolved("tracking").rules()
    assert (rules.minimum_stars, rules.languages) == (0, ("Cython", "Rust"))
    monkeypatch.setenv("FC_LANGUAGES", "Any")
    assert resolved("tracking").rules().languages == ()


def test_nothing_is_written_before_it_is_needed(tmp_path: Path) -> None:
    for name in default_resources():
        resolved(name)
    assert list(tmp_path.iterdir()) == []


def test_the_home_is_made_and_an_unwritable_one_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert make_home() == tmp_path / "home"
    assert (tmp_path / "home").is_dir()
    (tmp_path / "file").touch()
    monkeypatch.setenv("FC_HOME", str(tmp_path / "file" / "below"))
    with pytest.raises(ConfigurationError, match=r"cannot write .*below.*set FC_HOME"):
        make_home()


@pytest.mark.parametrize(
    ("resource", "setting", "value", "ask"),
    [
        ("tracking", "FC_MINIMUM_STARS", "many", lambda one: one.rules()),
        ("containers", "FC_CPUS", "-1", lambda one: one.limits),
        ("containers", "FC_MEMORY_MB", "255", lambda one: one.limits),
        ("containers", "FC_DISK_MB", "0", lambda one: one.limits),
        ("containers", "FC_IMAGES_GB", "-1", lambda one: one.budgets),
        ("containers", "FC_BUILD_CACHE_GB", "some", lambda one: one.budgets),
        ("containers", "FC_BUILD_SECONDS", "0", lambda one: one.limits),
        ("containers", "FC_BENCHMARK_SECONDS", "1.5", lambda one: one.limits),
        ("containers", "FC_ROUNDS", "6", lambda one: one.plan),
        ("containers", "FC_SAMPLE_SECONDS", "inf", lambda one: one.plan),
        ("containers", "FC_MEASURE_SECONDS", "9", lambda one: one.plan),
        ("containers", "FC_CA_BUNDLE", "/no/such.pem", lambda one: one.chosen()),
        ("containers", "FC_ENGINE", "podman", lambda one: one.chosen()),
        ("registry", "FC_REGISTRY_MODE", "both", lambda one: one.client()),
        ("hub", "HF_TOKEN_PATH", "/no/such/token", lambda one: one.destination()),
    ],
)
def test_a_value_that_cannot_be_is_named_with_its_setting(
    monkeypatch: pytest.MonkeyPatch, resource: str, setting: str, value: str, ask: Any
) -> None:
    monkeypatch.setenv("FC_REGISTRY_URL", "127.0.0.1:1")
    monkeypatch.setenv("HF_DATASET", "a/b")
    monkeypatch.setenv(setting, value)
    with pytest.raises(ConfigurationError, match=setting) as caught:
        ask(resolved(resource))
    assert caught.value.remedy


def test_the_defaults_are_values_that_can_be(tmp_path: Path) -> None:
    containers = resolved("containers")
    assert (containers.limits.cpus, containers.limits.memory_mb, containers.plan.rounds) == (2.0, 4096, 7)
    assert resolved("registry").client() is None
    assert resolved("reports").folder() == tmp_path / "home" / "reports"


@pytest.mark.docker
def test_sources_are_read_where_images_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FC_ENGINE", "docker")
    assert isinstance(resolved("containers").resolver().reading, DockerUvRunner)
    monkeypatch.setenv("FC_ENGINE", "process")
    assert resolved("containers").resolver().reading is None


def test_the_dataset_goes_to_a_folder_or_to_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert isinstance(resolved("hub").destination(), FolderDestination)
    monkeypatch.setenv("HF_DATASET", "owner/name")
    (tmp_path / "token").write_text("a-token\n")
    monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "token"))
    hub = resolved("hub")
    assert isinstance(hub.destination(), HubDestination)
    assert hub._token() == "a-token"


def test_a_model_without_its_settings_is_a_warning_and_asks_nobody() -> None:
    healthy, said = resolved("llm").preflight()
    assert not healthy
    assert "LLM_API_KEY and LLM_MODEL must be set" in said


def test_a_model_that_answers_is_fine_and_one_that_is_not_there_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_MODEL", "sandbox-rules")
    monkeypatch.setenv("LLM_API_KEY", "a-secret")
    with serving(model()) as url:
        monkeypatch.setenv("LLM_BASE_URL", f"{url}/v1")
        assert resolved("llm").preflight() == (True, f"{url}/v1 answers 200; model sandbox-rules")
    with pytest.raises(OutsideSystemError, match="fix LLM_BASE_URL") as caught:
        resolved("llm").preflight()
    assert "a-secret" not in str(caught.value)


def test_no_token_for_github_is_a_warning_and_asks_nobody() -> None:
    healthy, said = resolved("github").preflight()
    assert not healthy
    assert "GH_TOKENS is empty" in said
