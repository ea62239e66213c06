"""The units of deploy/systemd: systemd takes them, and they are held tight."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from dagster._core.instance.config import dagster_instance_config

from formulacode_dagster.orchestration import code_server_end
from formulacode_dagster.orchestration.code_server_launcher import CodeServerRunLauncher
from formulacode_dagster.orchestration.home import WAIT_FOR_CODE
from formulacode_dagster.orchestration.pooled_storage import PooledPostgresStorage
from tests.support.deployments import DEPLOY, dagster_yaml
from tests.support.documents import ROOT
from tests.support.systemd_units import HARDENING, MOST_EXPOSED, analyze, install_here, needs_systemd

UNITS = DEPLOY / "systemd"
SERVICES = sorted(UNITS.glob("*.service"))
LOCAL = "postgresql:///{}?host=/var/run/postgresql"
# what `databases.sh` runs as the user postgres, on a Postgres that is three files
RUNUSER = """#!/bin/sh
cd "$STATE" && shift 3
[ -e answers ] || { echo "no such socket" >&2; exit 2; }
case "$*" in
    *pg_roles) cat users ;;
    *pg_database) cat databases ;;
    createuser*) echo "$2" >>users ;;
    createdb*) echo "$4" >>databases; echo "$3 owns $4" >>made ;;
esac
"""


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """The units as they would stand where the platform is installed: here, in this environment, for this user."""
    install_here(
        tmp_path, *(path for kind in ("service", "slice", "target", "timer") for path in UNITS.glob(f"*.{kind}"))
    )
    return tmp_path


@needs_systemd
def test_systemd_takes_every_unit(units: Path) -> None:
    verified = analyze("verify", "--man=no", *sorted(path for path in units.iterdir() if path.is_file()))
    assert (verified.returncode, verified.stderr) == (0, "")


@needs_systemd
def test_systemd_complains_of_a_unit_that_is_wrong(units: Path) -> None:
    confined = units / HARDENING.parent.name / HARDENING.name
    confined.write_text(confined.read_text().replace("NoNewPrivileges=", "NoNewPrivilege="))
    assert "NoNewPrivilege" in analyze("verify", "--man=no", units / "formulacode-code.service").stderr


@needs_systemd
@pytest.mark.parametrize("name", [path.name for path in SERVICES])
def test_a_service_may_do_little_to_its_machine(name: str, units: Path) -> None:
    held = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED}", units / name)
    assert held.returncode == 0, held.stdout[-300:]
    (units / HARDENING.parent.name / HARDENING.name).unlink()
    assert analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED}", units / name).returncode != 0


def test_all_of_the_platform_is_started_and_ended_together() -> None:
    target = (UNITS / "formulacode.target").read_text()
    for path in SERVICES:
        text = path.read_text()
        assert "PartOf=formulacode.target" in text, path.name
        assert "EnvironmentFile=/etc/formulacode/settings.env" in text, path.name
        if "Type=exec" in text:
            assert path.name in target


def test_nothing_listens_beyond_localhost() -> None:
    for path in SERVICES:
        for address in re.findall(r"--host (\S+)|FC_LISTEN_HOST=(\S+)", path.read_text()):
            assert "".join(address) in ("127.0.0.1", "${FC_LISTEN_HOST}"), path.name


@pytest.mark.parametrize(
    "folder", [path.parent for path in sorted(DEPLOY.glob("*/dagster.yaml"))], ids=lambda path: path.name
)
def test_what_is_no_matter_of_deployment_is_as_in_the_checkout(folder: Path, tmp_path: Path) -> None:
    here, there = dagster_yaml(folder), dagster_yaml(DEPLOY.parent)
    (tmp_path / "dagster.yaml").write_text(yaml.safe_dump(here))
    taken, _ = dagster_instance_config(str(tmp_path))
    assert taken["storage"] == here["storage"], "Dagster takes it"
    for key in ("telemetry", "nux", "python_logs", "run_retries", "retention"):
        assert here[key] == there[key], key
    assert here["run_monitoring"]["max_runtime_seconds"] == there["run_monitoring"]["max_runtime_seconds"]
    assert here["concurrency"]["pools"] == there["concurrency"]["pools"]
    storage = {"module": PooledPostgresStorage.__module__, "class": PooledPostgresStorage.__name__}
    assert here["storage"] == {"custom": {**storage, "config": {"postgres_url": {"env": "DAGSTER_POSTGRES_URL"}}}}


def test_a_month_may_take_longer_than_one_worker_needs_for_it() -> None:
    said = re.search(r"^\| 1 \| one store \| ([0-9.]+) h", (ROOT / "docs" / "operations.md").read_text(), re.MULTILINE)
    assert said is not None
    limit = dagster_yaml(DEPLOY.parent)["run_monitoring"]["max_runtime_seconds"]
    assert limit == 14 * 24 * 3600 > float(said[1]) * 3600


@pytest.mark.parametrize("path", ["deploy/systemd/formulacode-daemon.service", "dockerfiles/platform.Dockerfile"])
def test_a_backfill_waits_for_a_code_location_that_is_cut_off(path: str) -> None:
    said = (DEPLOY.parent / path).read_text()
    assert [name for name, value in WAIT_FOR_CODE.items() if f"{name}={value}" not in said] == []


def test_a_stopped_code_location_ends_its_runs_and_a_killed_one_is_polled() -> None:
    service = (UNITS / "formulacode-code.service").read_text()
    (port,) = re.findall(r"grpc --host 127.0.0.1 --port (\d+)", service)
    assert f"ExecStop=-/opt/formulacode/venv/bin/python -m {code_server_end.__name__} {port}\n" in service
    (minutes,) = re.findall(r"TimeoutStopSec=(\d+)min", service)
    assert int(minutes) * 60 > code_server_end.PATIENCE_SECONDS
    launcher = {"module": CodeServerRunLauncher.__module__, "class": CodeServerRunLauncher.__name__}
    for folder in (UNITS, ROOT):
        config = dagster_yaml(folder)
        assert config["run_launcher"] == launcher, folder
        assert config["run_monitoring"]["enabled"], folder


def make_databases(folder: Path, *settings: str) -> subprocess.CompletedProcess[str]:
    program = folder / "bin" / "runuser"
    program.parent.mkdir(exist_ok=True)
    program.write_text(RUNUSER)
    program.chmod(0o755)
    for name in ("users", "databases"):
        (folder / name).touch()
    (folder / "settings.env").write_text("FC_DATABASE_URL=\n" + "".join(f"{line}\n" for line in settings))
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "STATE": str(folder)}
    command = [UNITS / "databases.sh", folder / "settings.env"]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_what_an_install_could_not_make_the_next_one_makes(tmp_path: Path) -> None:
    settings = (
        f"FC_DATABASE_URL={LOCAL.format('formulacode')}",
        f"FC_DAGSTER_DATABASE_URL={LOCAL.format('formulacode_dagster')}",
    )
    assert make_databases(tmp_path, *settings).returncode != 0
    (tmp_path / "answers").touch()
    (tmp_path / "databases").write_text("postgres\nformulacode\n")
    for _ in range(2):
        done = make_databases(tmp_path, *settings)
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "users").read_text() == "formulacode\n"
        assert (tmp_path / "made").read_text() == "formulacode owns formulacode_dagster\n"


def test_an_install_touches_no_postgres_that_is_elsewhere(tmp_path: Path) -> None:
    elsewhere = "FC_DATABASE_URL=postgresql://formulacode@db.example/formulacode"
    assert make_databases(tmp_path, f"FC_DATABASE_URL={LOCAL.format('formulacode')}", elsewhere).returncode == 0


@needs_systemd
def test_systemd_takes_what_the_documentation_says_of_a_rootless_engine(units: Path) -> None:
    (told,) = re.findall(r"```ini\n(.*?)```", (ROOT / "docs/deployment.md").read_text(encoding="utf-8"), re.DOTALL)
    service = units / "formulacode-code.service"
    beside = units / f"{service.name}.d" / "override.conf"
    beside.parent.mkdir()
    beside.write_text(told)
    verified = analyze("verify", "--man=no", service)
    assert (verified.returncode, verified.stderr) == (0, "")
    beside.write_text(told.replace("ProtectHome=tmpfs", "ProtectHome=tempfs"))
    assert "tempfs" in analyze("verify", "--man=no", service).stderr
