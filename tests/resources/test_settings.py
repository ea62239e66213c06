from __future__ import annotations

import re
from pathlib import Path

import dagster as dg
import pytest

from formulacode_dagster.models.errors import ConfigurationError
from resources.settings import SETTINGS, decimal_number, load_env_file, setting, whole_number

ROOT = Path(__file__).parents[2]


def test_env_example_documents_every_setting_and_nothing_else() -> None:
    text = (ROOT / ".env.example").read_text()
    assert re.findall(r"^#([A-Z_]+)=", text, flags=re.MULTILINE) == [one.name for one in SETTINGS]
    for one in SETTINGS:
        assert f"# {one.meaning}" in text


def test_a_variable_that_is_set_is_handed_on_by_name_and_never_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GH_TOKENS", "a-secret")
    assert isinstance(setting("GH_TOKENS"), dg.EnvVar)
    monkeypatch.delenv("GH_TOKENS")
    assert setting("GH_TOKENS") == ""


def test_a_malformed_env_file_names_its_line(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("GOOD=1\nBAD='unclosed\n")
    with pytest.raises(ConfigurationError, match="line 2 cannot be read"):
        load_env_file(tmp_path / ".env")


def test_the_environment_wins_over_the_env_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FC_ROUNDS", "9")
    monkeypatch.delenv("FC_CPUS", raising=False)
    (tmp_path / ".env").write_text("FC_ROUNDS=7\nFC_CPUS=1\n")
    load_env_file(tmp_path / ".env")
    import os

    assert (os.environ["FC_ROUNDS"], os.environ["FC_CPUS"]) == ("9", "1")
    monkeypatch.setenv("FC_CPUS", "")


@pytest.mark.parametrize("text", ["", "seven", "6", "-1", "7.5"])
def test_a_number_that_is_none_names_its_setting(text: str) -> None:
    with pytest.raises(ConfigurationError, match="FC_ROUNDS"):
        whole_number("FC_ROUNDS", text, minimum=7)
    with pytest.raises(ConfigurationError, match="FC_CPUS"):
        decimal_number("FC_CPUS", "nan")
