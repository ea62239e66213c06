"""The units of deploy/systemd: systemd takes them, and they are held tight."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from dagster._core.instance.config import dagster_instance_config

from formulacode_dagster.orchestration.home import WAIT_FOR_CODE
from formulacode_dagster.orchestration.pooled_storage import PooledPostgresStorage
from tests.support.deployments import DEPLOY, dagster_yaml
from tests.support.systemd_units import MOST_EXPOSED, analyze, as_installed_here, needs_systemd

UNITS = DEPLOY / "systemd"
SERVICES = sorted(UNITS.glob("*.service"))


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """The units as they would stand where the platform is installed: here, in this environment, for this user."""
    for path in (path for kind in ("service", "slice", "target", "timer") for path in UNITS.glob(f"*.{kind}")):
        (tmp_path / path.name).write_text(as_installed_here(path.read_text()))
    return tmp_path


@needs_systemd
def test_systemd_takes_every_unit(units: Path) -> None:
    verified = analyze("verify", "--man=no", *sorted(units.iterdir()))
    assert (verified.returncode, verified.stderr) == (0, "")


@needs_systemd
def test_systemd_complains_of_a_unit_that_is_wrong(units: Path) -> None:
    service = units / "formulacode-code.service"
    service.write_text(service.read_text().replace("NoNewPrivileges=", "NoNewPrivilege="))
    assert "NoNewPrivilege" in analyze("verify", "--man=no", service).stderr


@needs_systemd
@pytest.mark.parametrize("name", [path.name for path in SERVICES])
def test_a_service_may_do_little_to_its_machine(name: str, units: Path) -> None:
    held = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED}", units / name)
    assert held.returncode == 0, held.stdout[-300:]


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
    for key in ("telemetry", "nux", "run_retries", "retention"):
        assert here[key] == there[key], key
    assert here["concurrency"]["pools"] == there["concurrency"]["pools"]
    storage = {"module": PooledPostgresStorage.__module__, "class": PooledPostgresStorage.__name__}
    assert here["storage"] == {"custom": {**storage, "config": {"postgres_url": {"env": "DAGSTER_POSTGRES_URL"}}}}


@pytest.mark.parametrize("path", ["deploy/systemd/formulacode-daemon.service", "dockerfiles/platform.Dockerfile"])
def test_a_backfill_waits_for_a_code_location_that_is_cut_off(path: str) -> None:
    said = (DEPLOY.parent / path).read_text()
    assert [name for name, value in WAIT_FOR_CODE.items() if f"{name}={value}" not in said] == []
