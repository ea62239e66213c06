"""`fc-data` at its edges: help, known errors, and the commands that need no month. `tests/end_to_end` runs months."""

from __future__ import annotations

import gc
import io
import os
import re
import signal
import socket
import subprocess
import sys
import time
from importlib.metadata import version
from pathlib import Path

import pytest
import typer
from typer.main import get_command
from typer.testing import CliRunner

from formulacode_dagster.cli import app as application
from formulacode_dagster.cli.app import app, current_options, tell_interrupted
from formulacode_dagster.models.items import ItemSection, Stage
from formulacode_dagster.operating.store.migrations import read_migrations
from resources import environment
from tests.support.command_line import FC_DATA, FcData, complaint, run_fc_data

COMMANDS = get_command(app).commands
MONTH = "2026-02"


def helped(*arguments: str) -> str:
    shown = CliRunner().invoke(app, [*arguments, "--help"], env={"COLUMNS": "200", "TERM": "dumb"})
    assert shown.exit_code == 0
    return shown.output


def test_the_commands_are_the_documented_ones() -> None:
    documented = {
        "run",
        "funnel",
        "why",
        "preflight",
        "migrate",
        "pools",
        "mirrors",
        "sandbox",
        "site",
        "demo",
        "verify",
    }
    documented |= {
        "accept",
        "assist",
        "backup",
        "benchmark",
        "contexts",
        "dashboards",
        "dev",
        "evaluate",
        "export",
        "operations",
        "plan",
        "metrics",
        "housekeeping",
        "offline",
        "profile",
        "rebuild",
        "release",
        "replay",
        "repositories",
        "restore",
        "results",
        "review",
        "show",
        "synthesize",
        "tune",
    }
    assert documented == set(COMMANDS)
    text = helped()
    for name in documented:
        assert re.search(rf"\b{name} +[A-Z].*\.", text), name


def test_the_version_is_that_of_the_package(call_fc_data: FcData) -> None:
    answer = call_fc_data("--version")
    assert (answer.returncode, answer.stdout) == (0, f"fc-data {version('formulacode-dagster')}\n")


@pytest.mark.slow
def test_a_shell_completes_commands_and_the_stages_of_run(tmp_path: Path) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "_FC_DATA_COMPLETE": "complete_bash"}
    for words, offered in (("fc-data fun", {"funnel"}), ("fc-data run --stage published_d", {"published_dataset"})):
        place = {"COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
        done = subprocess.run([str(FC_DATA)], env={**environment, **place}, capture_output=True, text=True, timeout=60)
        assert set(done.stdout.split()) == offered, done


def test_options_of_run_are_listed_by_what_they_decide() -> None:
    text = helped("run")
    places = [text.index(group) for group in ("Which months", "What of them", "How")]
    assert places == sorted(places)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_commands_help_describes_its_purpose_options_and_defaults(name: str) -> None:
    text = helped(name)
    command = COMMANDS[name]
    assert command.help is not None
    assert command.help.split(";")[0].split(".")[0] in text
    given = [parameter for parameter in command.params if parameter.name != "help"]
    assert all(getattr(parameter, "help", "") for parameter in given)
    # a month has no default: either it is given, or both of its dates
    free = {"month", "start_date", "end_date"} if name == "run" else set()
    told = text.count("[default:") + text.count("[required]")
    assert told == len([parameter for parameter in given if parameter.name not in free])


@pytest.mark.slow
def test_without_a_command_there_is_help(tmp_path: Path) -> None:
    answer = run_fc_data(tmp_path)
    assert answer.returncode == 0
    assert "One pull request, or one repository" in answer.stdout
    assert answer.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "--month", MONTH, "--stage", "nope"], "'nope' is not one of 'repositories', 'pull_requests'"),
        (["run", "--month", MONTH, "--concurrency", "0"], "greater than or equal to 1. See `fc-data run --help`"),
        (["nope"], "No such command 'nope'. See `fc-data --help`"),
        (["funel"], "Did you mean 'funnel', 'tune'? See `fc-data --help`"),
        (["show", "a/b#1", "lokc"], "'lokc' is unknown. One of classification, statement, patch"),
        (["why"], "Missing argument 'item'. See `fc-data why --help`"),
        (["sandbox", "--port", "70000"], "less than or equal to 65532"),
        (["run", "--month", "2014-12"], "month 2014-12 is before 2015-01, the first one covered"),
        (["run", "--month", "2999-01"], "month 2999-01 is not over yet. Take 2015-01 to"),
        (["run", "--month", "[/red]"], "'[/red]' is not a month. Write it as YYYY-MM"),
        (["run", "--month", "2026-13"], "'2026-13' is not a month"),
        (["run"], "no month was given. Give --month 2026-02, or --start-date"),
        (["run", "--month", MONTH, "--start-date", "2026-02-01"], "no month was given"),
        (["run", "--start-date", "2026-02-01", "--end-date", "2026-02-15"], "'2026-02-15' is not the first day"),
        (["run", "--start-date", "2026-03-01", "--end-date", "2026-02-01"], "contains no month. Put the end after"),
        (["run", "--month", MONTH, "--only", "not an item"], "Write it as owner/repo or owner/repo#123"),
        (["run", "--month", MONTH, "--reask"], "skips items that are judged already. Give --force too"),
        (["run", "--month", MONTH, "--reason", "noise"], "is for forced runs, and nothing is forced. Give --force"),
        (["run", "--month", MONTH, "--force"], "is stored with its reason, and none is given. Give --reason"),
        (["why", "nonsense"], "'nonsense' names neither a repository nor a pull request"),
        (["mirrors", "--evict", "a/b"], "there is no mirror of a/b. `fc-data mirrors` lists them"),
        (["mirrors", "--evict", "../etc"], "'../etc' names neither a repository"),
        (["sandbox", "--repositories", "."], "holds no bare repository. Put them there as owner/name.git"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_known_error_is_one_line_and_status_1(call_fc_data: FcData, arguments: list[str], said: str) -> None:
    assert said in complaint(call_fc_data(*arguments))


def test_a_former_option_still_works_with_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    assert current_options(["run", "--max-concurrency", "2", "--n-concurrent=3"]) == [
        "run",
        "--concurrency",
        "2",
        "--concurrency=3",
    ]
    assert "--n-concurrent is now called --concurrency" in capsys.readouterr().err


def test_options_of_the_predecessor_run_months_without_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    former = ["--start-date", "2026-02-01", "--end-date=2026-03-01", "--tasks-per-repo", "5"]
    assert current_options(former) == ["run", *former[:3], "--limit-per-repository", "5"]
    assert "is now `fc-data run`" in capsys.readouterr().err


def test_options_of_another_program_stay_as_they_are() -> None:
    others = ["evaluate", "task", "--", "agent", "--n-concurrent", "2"]
    assert current_options(others) == others


@pytest.mark.parametrize("line", ["BAD='unclosed", "= nothing", "two words"])
def test_a_malformed_env_file_is_named_with_its_line(tmp_path: Path, call_fc_data: FcData, line: str) -> None:
    (tmp_path / ".env").write_text(f"FC_CPUS=2\nGH_TOKENS=secret-token\n{line}\n")
    said = complaint(call_fc_data("migrate"))
    assert ".env, line 3 cannot be read. Write NAME=value on each line" in said
    assert "secret-token" not in said


def test_a_setting_of_the_env_file_counts(tmp_path: Path, call_fc_data: FcData) -> None:
    (tmp_path / ".env").write_text("FC_DATABASE_URL=mysql://u:secret-word@h/d\n")
    said = complaint(call_fc_data("migrate"))
    assert "FC_DATABASE_URL names a 'mysql' database. Only Postgres is supported" in said


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path, call_fc_data: FcData) -> None:
    (tmp_path / "home").write_text("a file")
    for command in ("migrate", "pools", "mirrors", "sandbox"):
        assert str(tmp_path / "home") in complaint(call_fc_data(command))


def test_a_dead_database_is_one_line_without_its_password(call_fc_data: FcData) -> None:
    answer = call_fc_data("migrate", FC_DATABASE_URL="postgresql://u:secret-word@127.0.0.1:1/d")
    said = complaint(answer)
    assert "127.0.0.1:1/d does not answer" in said
    assert "secret-word" not in said


@pytest.mark.slow
def test_ctrl_c_says_how_to_go_on(tmp_path: Path) -> None:
    # a server that takes connections and never says a word
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        environment = {
            "PATH": os.environ["PATH"],
            "FC_HOME": str(tmp_path),
            "FC_DATABASE_URL": f"postgresql://u@127.0.0.1:{silent.getsockname()[1]}/d",
        }
        process = subprocess.Popen(
            [str(FC_DATA), "migrate"], env=environment, cwd=tmp_path, stderr=subprocess.PIPE, text=True
        )
        silent.settimeout(60)
        accepted, _ = silent.accept()
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
        accepted.close()
    assert process.returncode == 130
    assert said.splitlines()[-1] == "interrupted; run the same command again to continue"
    assert "Traceback" not in said


@pytest.mark.parametrize(("interrupts", "status"), [(False, 1), (True, 130)], ids=["no", "ctrl-c"])
def test_no_to_a_question_is_one_line(
    interrupts: bool, status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Terminal(io.StringIO):
        def readline(self, *_: object) -> str:
            if interrupts:
                os.kill(os.getpid(), signal.SIGINT)
            return "n\n"

    monkeypatch.setattr(application, "app", lambda *_, **__: typer.confirm("Run all the same?", abort=True))
    monkeypatch.setattr(environment, "prepare_environment", lambda: None)
    monkeypatch.setattr(gc, "freeze", lambda: None)
    monkeypatch.setattr(gc, "set_threshold", lambda *_: None)
    monkeypatch.setattr(sys, "stdin", Terminal())
    with pytest.raises(SystemExit) as ended:
        application.main()
    assert ended.value.code == status
    assert capsys.readouterr().err.strip() == "nothing was run"


def test_a_reading_command_has_nothing_to_continue(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for command, said in (("funnel", "interrupted"), ("run", "interrupted; run the same command again to continue")):
        monkeypatch.setattr(sys, "argv", ["fc-data", command, "--month", MONTH])
        tell_interrupted()
        assert capsys.readouterr().err == f"{said}\n"


@pytest.mark.parametrize("command", ["run", "why", "show", "accept", "assist"])
def test_no_choice_is_broken_inside_a_word_at_80_columns(command: str) -> None:
    shown = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "80", "TERM": "dumb"}).output
    words = set(re.split(r"[^a-z_]+", shown))
    assert set(ItemSection if command == "show" else Stage) <= words


def test_migrate_twice(call_fc_data: FcData, empty_database_url: str) -> None:
    first = call_fc_data("migrate", FC_DATABASE_URL=empty_database_url)
    assert (first.returncode, first.stderr) == (0, "")
    assert first.stdout == f"applied {', '.join(migration.name for migration in read_migrations())}\n"
    second = call_fc_data("migrate", FC_DATABASE_URL=empty_database_url)
    assert (second.returncode, second.stderr) == (0, "")
    assert re.fullmatch(r"postgresql\S+ is up to date\n", second.stdout)


@pytest.mark.slow
def test_pools_are_set_once(call_fc_data: FcData) -> None:
    first, second = call_fc_data("pools"), call_fc_data("pools")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    limits = {"github": 2, "llm": 2, "build": 1, "measure": 1}
    assert first.stdout.splitlines() == [f"{name}: {limit} (set now)" for name, limit in limits.items()]
    assert second.stdout.splitlines() == [f"{name}: {limit}" for name, limit in limits.items()]
