"""`fc-data preflight`: every system is probed, and each unhealthy one is listed with a remedy."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from formulacode_dagster.operating.store.database import Database
from resources.documentation import SETTINGS
from tests.support.command_line import FcData, run_fc_data


def findings(answer: subprocess.CompletedProcess[str]) -> dict[str, tuple[str, str]]:
    """Health and text by system."""
    lines = [line.split(maxsplit=2) for line in answer.stdout.splitlines()]
    return {system: (health, text) for health, system, text in lines}


@pytest.mark.slow
def test_preflight_with_nothing_set_says_what_is_missing_and_what_to_do(tmp_path: Path) -> None:
    answer = run_fc_data(tmp_path, "preflight", FC_ENGINE="process")
    found = findings(answer)
    assert (answer.returncode, answer.stderr) == (0, "")
    asked = ["github", "llm", "containers", "agents", "registry", "hub", "alerts"]
    assert list(found) == ["programs", "settings", "postgres", *asked]
    for system, health, said in (
        ("programs", "ok", "git, cc and make are on PATH"),
        ("settings", "ok", f"2 of {len(SETTINGS)} are set"),
        ("postgres", "ok", "answers and is up to date"),
        ("github", "warning", "GH_TOKENS is empty; code search and GraphQL need a token"),
        ("llm", "warning", "LLM_API_KEY and LLM_MODEL must be set before anything is classified"),
        ("containers", "ok", "interpreters: 3."),
        ("agents", "ok", "FC_AGENT=none: disabled"),
        ("registry", "ok", "FC_REGISTRY_URL is empty: images are built and measured, not published"),
        ("hub", "ok", f"{tmp_path}/home/dataset answers, 0 releases"),
        ("alerts", "ok", "alerts are disabled"),
    ):
        assert found[system][0] == health, system
        assert said in found[system][1]


def test_preflight_with_everything_broken_goes_through_all_of_it_and_fails(
    tmp_path: Path, call_fc_data: FcData
) -> None:
    dead = "127.0.0.1:1"
    answer = call_fc_data(
        "preflight",
        PATH=str(tmp_path),
        FC_DATABASE_URL=f"postgresql://u:secret-word@{dead}/d",
        LLM_BASE_URL=f"http://{dead}/v1",
        LLM_API_KEY="secret-word",
        LLM_MODEL="m",
        FC_CA_BUNDLE="/no/such.pem",
        FC_REGISTRY_URL=dead,
        HF_ENDPOINT=f"http://{dead}",
        HF_DATASET="a/b",
        HF_TOKEN="secret-word",
        FC_AGENT="claude",
        FC_AGENT_API_KEY="secret-word",
        FC_ALERT_WEBHOOK="https://example.org/secret-word",
    )
    found = findings(answer)
    assert answer.returncode == 1
    assert "Traceback" not in answer.stderr
    assert "secret-word" not in answer.stdout + answer.stderr
    assert {system for system, (health, _) in found.items() if health == "broken"} == set(found) - {
        "settings",
        "github",
        "alerts",
    }
    for system, said in (
        ("programs", "git, cc, make not found on PATH. Install it"),
        ("postgres", "Start it or fix FC_DATABASE_URL"),
        ("llm", "Start it, or fix LLM_BASE_URL"),
        ("containers", "FC_CA_BUNDLE names /no/such.pem, which is not a file. Name a PEM file"),
        ("agents", "FC_AGENT=claude: claude is not on PATH. Install it"),
        ("registry", "Start it, or fix FC_REGISTRY_URL"),
        ("hub", "HF_ENDPOINT"),
        ("alerts", "alerts go to webhook"),
    ):
        assert said in found[system][1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("helpers", "pooler", "health"), [(0, "false", "ok"), (9, "false", "warning"), (9, "true", "ok")]
)
def test_preflight_warns_of_helpers_that_the_server_has_no_connections_for(
    helpers: int, pooler: str, health: str, database: Database, database_url: str, call_fc_data: FcData
) -> None:
    most = database.room() // 10
    answer = call_fc_data(
        "preflight",
        FC_DATABASE_URL=database_url,
        FC_DATABASE_TRANSACTION_POOLING=pooler,
        FC_DATABASE_CONNECTIONS=str(most + 1),
        FC_HELPER_RUNS=str(helpers),
    )
    found, said = findings(answer)["postgres"]
    assert found == health
    assert (f"set FC_DATABASE_CONNECTIONS to {most} at most" in said) == (health == "warning")


def test_preflight_names_all_invalid_settings_and_calls_no_system(call_fc_data: FcData) -> None:
    answer = call_fc_data("preflight", FC_CPUS="many", LLM_SECONDS="0")
    found = findings(answer)
    assert (answer.returncode, answer.stderr) == (1, "")
    assert {system: health for system, (health, _) in found.items()} == {"programs": "ok", "settings": "broken"}
    assert found["settings"][1].startswith("LLM_SECONDS is '0'; FC_CPUS is 'many'. Write a whole number, 1 or more for")
