"""Each resource's client from its settings, and the error that names the setting."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_origin

import dagster as dg
import pytest
from pydantic import SecretStr

from formulacode_dagster.building.engines.docker.engine import DockerEngine
from formulacode_dagster.building.engines.docker.uv_runner import DockerUvRunner
from formulacode_dagster.building.engines.process.engine import ProcessEngine
from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.models.completion import Forgetful
from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.models.image import EngineName, ResourceLimits
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import IMAGES, MERGED_PULL_REQUESTS
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from formulacode_dagster.releasing.dataset.hub import HubDestination
from formulacode_dagster.selection.classification.model_access import SessionAccount
from resources.containers import ContainersResource
from resources.defaults import default_resources
from resources.documentation import SETTINGS
from resources.github import GitHubResource
from resources.probes import Health, probe
from resources.setting_types import AgentSetting, EngineChoice, RegistryMode
from resources.settings import Settings, make_home
from sandbox.model.app import app as model
from sandbox.registry import app as registry
from sandbox.server import serving
from tests.records import make_image, make_merged
from tests.support.model_servers import SERVERS
from tests.support.registries import PASSWORD, USER, guarded


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for setting in SETTINGS:
        monkeypatch.delenv(setting.name, raising=False)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("FC_HOME", str(tmp_path / "home"))


def test_a_field_is_a_setting_of_the_same_type_and_no_secret() -> None:
    for name, resource in default_resources().items():
        for field, taken in type(resource).model_fields.items():
            setting = Settings.model_fields[field]
            kind = next(
                (argument for argument in get_args(setting.annotation) if argument is not NoneType), setting.annotation
            )
            # what Dagster's configuration has no type for
            shown = kind if kind in (int, float, AgentSetting, EngineChoice, RegistryMode) else str
            several = get_origin(setting.annotation) is tuple
            assert taken.annotation == (list[str] if several else shown) | None, (name, field)
            assert setting.annotation is not SecretStr
            assert str(setting.alias) in str(taken.description)


def test_no_secret_is_part_of_a_resource_nor_shown_of_its_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for setting in SETTINGS:
        if setting.secret:
            monkeypatch.setenv(setting.name, "a-secret")
    for resource in default_resources().values():
        assert resource.settings.gh_tokens.get_secret_value() == "a-secret"
        assert "a-secret" not in f"{resource!r} {resource.settings!r} {resource.settings.model_dump_json()}"


def test_github_is_asked_with_the_tokens_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GH_TOKENS", "one, two ,")
    github = GitHubResource()
    assert (github.settings.github_tokens, github.settings.github_api_url) == (("one", "two"), "https://api.github.com")
    assert len(github.client(Stage.REPOSITORIES).tokens()) == 2


def test_what_a_run_gives_a_resource_goes_before_the_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FC_CPUS", "3")
    monkeypatch.setenv("FC_ENGINE", "docker")
    seen: list[tuple[float, str]] = []

    @dg.asset
    def probe(containers: ContainersResource) -> None:
        seen.append((containers.limits.cpus, containers.settings.engine.value))

    for config in ({}, {"cpus": 1.5, "engine": "process"}):
        given = {"resources": {"containers": {"config": config}}}
        dg.materialize([probe], resources={"containers": ContainersResource()}, run_config=given)
    assert seen == [(3.0, "docker"), (1.5, "process")]
    wrong = {"resources": {"containers": {"config": {"cpus": "many"}}}}
    with pytest.raises(dg.DagsterInvalidConfigError, match="many"):
        dg.materialize([probe], resources={"containers": ContainersResource()}, run_config=wrong)


def test_the_rules_of_tracking_are_those_of_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = default_resources()["tracking"].rules()
    assert rules.minimum_stars == 500
    assert {"Python", "C++", "Jupyter Notebook"} < set(rules.languages)
    monkeypatch.setenv("FC_LANGUAGES", " Cython, Rust ,")
    monkeypatch.setenv("FC_MINIMUM_STARS", "0")
    rules = default_resources()["tracking"].rules()
    assert (rules.minimum_stars, rules.languages) == (0, ("Cython", "Rust"))
    monkeypatch.setenv("FC_LANGUAGES", "Any")
    assert default_resources()["tracking"].rules().languages == ()


def test_nothing_is_written_before_it_is_needed(tmp_path: Path) -> None:
    for resource in default_resources().values():
        assert resource.settings
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
        ("sampling", "FC_MEASUREMENT_CONCURRENCY", "0", lambda one: one.plan()),
        ("sampling", "FC_SAMPLE_SECONDS", "inf", lambda one: one.plan()),
        ("sampling", "FC_MEASURE_SECONDS", "9", lambda one: one.plan()),
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
        ask(default_resources()[resource])
    assert caught.value.remedy


def test_the_defaults_are_values_that_can_be(tmp_path: Path) -> None:
    containers = default_resources()["containers"]
    assert (containers.limits.cpus, containers.limits.memory_mb) == (2.0, 4096)
    assert default_resources()["sampling"].plan().max_seconds == 600
    assert default_resources()["registry"].client() is None
    assert default_resources()["reports"].folder() == tmp_path / "home" / "reports"


@pytest.mark.docker
def test_sources_are_read_where_images_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FC_ENGINE", "docker")
    assert isinstance(default_resources()["containers"].resolver().reading, DockerUvRunner)
    monkeypatch.setenv("FC_ENGINE", "process")
    assert default_resources()["containers"].resolver().reading is None


def test_the_dataset_goes_to_a_folder_or_to_the_hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert isinstance(default_resources()["hub"].destination(), FolderDestination)
    monkeypatch.setenv("HF_DATASET", "owner/name")
    (tmp_path / "token").write_text("a-token\n")
    monkeypatch.setenv("HF_TOKEN_PATH", str(tmp_path / "token"))
    hub = default_resources()["hub"]
    destination = hub.destination()
    assert isinstance(destination, HubDestination)
    assert destination._token == "a-token"


@pytest.mark.parametrize("password", [PASSWORD, "mistyped"])
def test_a_registry_that_refuses_the_account_is_an_error(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, password: str
) -> None:
    with serving(guarded(registry(tmp_path))) as url:
        settings = {"FC_REGISTRY_URL": url, "DOCKERHUB_USERNAME": USER, "DOCKERHUB_TOKEN": password}
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        found = probe("registry", default_resources()["registry"].preflight)
    if password == PASSWORD:
        assert (found.health, found.text) == (Health.OK, f"{url} answers, and accepts our account")
        return
    assert found.health is Health.BROKEN
    assert "Set DOCKERHUB_USERNAME and DOCKERHUB_TOKEN" in found.text
    assert password not in found.text


def test_a_model_without_its_settings_is_a_warning_and_asks_nobody() -> None:
    healthy, said = default_resources()["llm"].preflight()
    assert not healthy
    assert "LLM_API_KEY and LLM_MODEL must be set" in said


def test_an_answering_model_is_fine_and_a_missing_one_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLM_MODEL", "sandbox-rules")
    monkeypatch.setenv("LLM_API_KEY", "a-secret")
    with serving(model()) as url:
        monkeypatch.setenv("LLM_BASE_URL", f"{url}/v1")
        said = f"{url}/v1 answers 200; model sandbox-rules: json_schema, max_completion_tokens, temperature 0"
        assert default_resources()["llm"].preflight() == (True, said)
        monkeypatch.setenv("FC_STATEMENT_JUDGES", "sandbox-rules, gpt-0")
        with pytest.raises(OutsideSystemError, match="has no model 'gpt-0'"):
            default_resources()["llm"].preflight()
        monkeypatch.delenv("FC_STATEMENT_JUDGES")
    with serving(model(server=SERVERS["llama.cpp"])) as url:
        monkeypatch.setenv("LLM_BASE_URL", f"{url}/v1")
        assert (
            default_resources()["llm"].preflight()[1].endswith("sandbox-rules: json_object, max_tokens, temperature 0")
        )
    with serving(model(server=SERVERS["prose-alone"])) as url:
        monkeypatch.setenv("LLM_BASE_URL", f"{url}/v1")
        with pytest.raises(OutsideSystemError, match="in no form"):
            default_resources()["llm"].preflight()
    with pytest.raises(OutsideSystemError, match="fix LLM_BASE_URL") as caught:
        default_resources()["llm"].preflight()
    assert "a-secret" not in str(caught.value)


@pytest.mark.parametrize(("judge", "second"), [("", None), ("one", "one"), ("two", "two")])
def test_a_second_judge_is_another_model_or_the_first_out_of_one_budget(
    judge: str, second: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"LLM_MODEL": "one", "LLM_API_KEY": "key", "FC_CLASSIFICATION_JUDGE": judge}.items():
        monkeypatch.setenv(name, value)

    async def opened() -> tuple[str | None, bool]:
        tools = default_resources()["llm"].classification_tools(Forgetful())
        async with tools.judges(SessionAccount("2026-02")) as judges:
            assert judges.first.name == "one"
            if judges.second is None:
                return None, True
            return judges.second.name, judges.second.budget is judges.first.budget

    assert asyncio.run(opened()) == (second, True)


def test_who_writes_and_who_judge_statements_spend_out_of_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"LLM_API_KEY": "key", "FC_STATEMENT_WRITER": "a", "FC_STATEMENT_JUDGES": "b,c"}.items():
        monkeypatch.setenv(name, value)

    async def budgets() -> list[object]:
        llm = default_resources()["llm"]
        async with llm.statement_models(Forgetful()).connect(SessionAccount("2026-02")) as models:
            return [model.budget for model in (models.writer, *models.judges.models)]

    first, *others = asyncio.run(budgets())
    assert len(others) == 2
    assert all(budget is first for budget in others)


def test_no_token_for_github_is_a_warning_and_asks_nobody() -> None:
    healthy, said = GitHubResource().preflight()
    assert not healthy
    assert "GH_TOKENS is empty" in said


@pytest.fixture
def no_docker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")


def enter_candidate(database: Database, repository: str) -> None:
    merged = make_merged(month="2026-02", repository_id=7, repository=repository, number=1)
    done = LedgerEntry(stage=Stage.CLASSIFICATIONS, month="2026-02", item=f"{repository}#1", state=ItemState.DONE)
    with database.transaction() as connection:
        MERGED_PULL_REQUESTS.save(connection, [merged])
        ledger.record(connection, [done])


def serve_samples(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    folder = make_home() / "sandbox" / "repositories"
    for name in names:
        (folder / f"{name}.git").mkdir(parents=True)
    monkeypatch.setenv("GITHUB_CLONE_URL", folder.as_uri())


def test_without_a_daemon_auto_builds_only_samples_in_folders(
    no_docker: None, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_samples(monkeypatch, "sample-org/gridpath")
    enter_candidate(database, "sample-org/gridpath")
    engine, why = ContainersResource().engine_for(database, "2026-02")
    assert engine.name is EngineName.PROCESS
    assert why.startswith("Building the samples in folders of this machine, since docker: connect: no answer")
    # a name is not enough: what is cloned from elsewhere may be anything
    for name, value in (("GITHUB_CLONE_URL", "https://github.com"), ("FC_OFFLINE_SOURCE", "/some/where")):
        with monkeypatch.context() as elsewhere:
            elsewhere.setenv(name, value)
            with pytest.raises(OutsideSystemError, match="sample-org/gridpath would be"):
                ContainersResource().engine_for(database, "2026-02")
    enter_candidate(database, "pandas-dev/pandas")
    with pytest.raises(OutsideSystemError, match="pandas-dev/pandas would be built in folders of this machine"):
        ContainersResource().engine_for(database, "2026-02")
    monkeypatch.setenv("FC_ENGINE", "process")
    assert ContainersResource().engine_for(database, "2026-02")[0].name is EngineName.PROCESS


def test_a_month_built_with_docker_is_not_moved_when_the_daemon_is_gone(
    no_docker: None, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    serve_samples(monkeypatch, "sample-org/gridpath")
    enter_candidate(database, "sample-org/gridpath")
    with database.transaction() as connection:
        IMAGES.save(connection, [make_image(month="2026-02", number=1, engine="docker")])
    with pytest.raises(OutsideSystemError, match="the month was built with Docker, and is not built otherwise"):
        ContainersResource().engine_for(database, "2026-02")


@pytest.mark.parametrize(
    ("cgroup", "engine", "apart"),
    [
        ("builds.slice", DockerEngine(), True),
        ("", DockerEngine(), False),
        ("builds.slice", ProcessEngine(Path("builds"), ResourceLimits()), False),
    ],
)
def test_builds_keep_off_timings_unless_docker_holds_them_in_a_cgroup(
    cgroup: str, engine: Engine, apart: bool, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FC_BUILD_CGROUP", cgroup)
    monkeypatch.setitem(vars(engine), "store", "here")
    machine = ContainersResource().machine(database, engine)
    assert machine.has_build_cores is apart
    with machine.building(), database.share("asks") as is_held:
        assert is_held("building on here") is not apart


@pytest.mark.parametrize("apart", [True, False])
def test_preflight_warns_where_code_of_others_runs_as_the_user(apart: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("resources.containers.can_confine", lambda: apart)
    monkeypatch.setenv("FC_ENGINE", "process")
    healthy, said = ContainersResource().preflight()
    assert healthy is apart
    assert ("user.max_user_namespaces" in said) is not apart
