"""Settings that cannot be: one line that says which, before anything is started."""

from __future__ import annotations

import pytest

from formulacode_dagster.models.items import Stage


def test_a_malformed_env_file_names_its_line(call_fc_data, tmp_path) -> None:
    (tmp_path / ".env").write_text("LLM_MODEL=rules\n\nGH_TOKENS='ghp_secret\nHF_DATASET=a/b\n")
    answer = call_fc_data("run", "--month", "2026-02")
    assert (answer.returncode, answer.stdout) == (1, "")
    assert ".env, line 3 cannot be read" in answer.stderr
    assert "Write NAME=value on each line, quotes closed" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert "ghp_secret" not in answer.stderr
    assert not (tmp_path / "home").exists(), "nothing was started"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--month", "2031-01"), "not over yet"),
        (("--month", "2014-12"), "before 2015-01"),
        (("--month", "2026-13"), "is not a month"),
        (("--month", "soon"), "is not a month"),
        ((), "no month was given"),
        (("--start-date", "2026-02-02", "--end-date", "2026-03-01"), "not the first day"),
        (("--start-date", "2026-03-01", "--end-date", "2026-02-01"), "contains no month"),
        (("--month", "2026-02", "--only", "what is this"), "owner/repo#123"),
    ],
)
def test_impossible_months_and_items_are_refused_before_the_start(call_fc_data, tmp_path, arguments, complaint) -> None:
    answer = call_fc_data("run", *arguments)
    assert answer.returncode == 1
    assert answer.stderr.startswith("error: ")
    assert complaint in answer.stderr
    assert "Traceback" not in answer.stderr
    assert not (tmp_path / "home").exists()


@pytest.mark.slow
@pytest.mark.variant("setting that is no value", most=1)
@pytest.mark.parametrize(
    ("name", "value"), [("FC_ENGINE", "podman"), ("FC_BUILD_SECONDS", "soon"), ("LLM_SECONDS", "0")]
)
def test_a_setting_that_is_no_value_is_named_and_costs_nothing(seeded, name, value) -> None:
    platform = seeded(Stage.REPOSITORIES, Stage.PULL_REQUESTS, Stage.CLASSIFICATIONS)
    platform.settings[name] = value
    stage = Stage.CLASSIFICATIONS if name.startswith("LLM") else Stage.ENVIRONMENTS
    with platform.serve():
        said = platform.run(stage, only=("sample-org/gridpath#12",))
    assert not said.succeeded
    said.tells(name)
    assert len(said.complaints) == 1
