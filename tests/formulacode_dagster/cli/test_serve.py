from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from formulacode_dagster.cli.sandbox import OFFLINE_SOURCE, sandbox_unless_set, with_demo_services
from sandbox.session import ASKED_OF_MODELS, MODEL, SUITS_SAMPLES, TAKES_THE_PLACE_OF, running_sandbox


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where a demo has left its repositories; no outside system is set."""
    subprocess.run(["git", "init", "--quiet", "--bare", str(tmp_path / "repositories/a/b.git")], check=True)
    with monkeypatch.context() as patched:
        for name in (*TAKES_THE_PLACE_OF, *SUITS_SAMPLES, "FC_MINIMUM_STARS", "FC_LANGUAGES"):
            # set, so that it is taken back at the end; an empty one is none
            patched.setenv(name, "")
        yield tmp_path


def test_the_sandbox_takes_the_place_of_outside_systems_where_none_is_set(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FC_MINIMUM_STARS", "7")
    before = dict(os.environ)
    with sandbox_unless_set(state):
        assert os.environ["GH_TOKENS"] == "sandbox"
        assert os.environ["GITHUB_CLONE_URL"] == (state / "repositories").as_uri()
        assert os.environ["FC_MINIMUM_STARS"] == "7", "what a person has set stays"
    assert "serving the sandbox too" in capsys.readouterr().err
    assert dict(os.environ) == before


@pytest.mark.parametrize("name", [*TAKES_THE_PLACE_OF, OFFLINE_SOURCE])
def test_one_that_is_set_is_never_overridden_nor_mixed_with_the_sandbox(
    state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    monkeypatch.setenv(name, "a-persons-own")
    before = dict(os.environ)
    with sandbox_unless_set(state):
        assert dict(os.environ) == before
    assert f"not serving the sandbox, though the demo was run: {name} set" in capsys.readouterr().err


def test_a_command_after_the_demo_finds_its_hub_but_one_over_files_does_not(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (state / "sandbox").mkdir()
    (state / "repositories").rename(state / "sandbox" / "repositories")
    monkeypatch.setenv("FC_HOME", str(state))
    found: list[str] = []

    def command(offline_source: str | None = None) -> None:
        found.append(os.environ.get("HF_DATASET", ""))

    with_demo_services(command)()
    with_demo_services(command)(offline_source="mirrors")
    assert found == ["sandbox/formulacode", ""]


def test_samples_are_measured_as_in_the_demo_unless_overridden(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Measured in another way, all would be measured again."""
    monkeypatch.setenv("FC_MEASUREMENT_CONCURRENCY", "1")
    with sandbox_unless_set(state):
        assert os.environ["FC_SAMPLE_SECONDS"] == SUITS_SAMPLES["FC_SAMPLE_SECONDS"]
        assert os.environ["FC_MEASUREMENT_CONCURRENCY"] == "1"


def test_all_that_the_sandbox_sets_is_known(state: Path) -> None:
    with running_sandbox(state / "repositories", state, samples=True) as sandbox:
        filters = {"FC_MINIMUM_STARS", "FC_LANGUAGES"}
        assert set(sandbox.environment) - filters - set(SUITS_SAMPLES) == set(TAKES_THE_PLACE_OF) - {"HF_TOKEN_PATH"}


def test_a_model_that_is_served_elsewhere_is_not_asked_for_in_the_sandbox(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FC_STATEMENT_WRITER", "a-persons-own")
    monkeypatch.setenv("FC_WORKLOAD_WRITER", MODEL)
    with running_sandbox(state / "repositories", state, samples=True) as sandbox:
        assert [sandbox.environment[name] for name in ASKED_OF_MODELS] == ["", "", MODEL]
