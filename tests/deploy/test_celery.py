"""deploy/celery, read: systemd and Celery take it, and each run has its queue. `test_celery_runs` runs it."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from bench.celery_services import CELERY, UNIT
from formulacode_dagster.models.items import Stage
from formulacode_dagster.orchestration.jobs import MONTH_JOB
from formulacode_dagster.orchestration.placement import BUILD, IO, MEASURE, QUEUE, run_tags
from tests.support.deployments import DEPLOY, dagster_yaml
from tests.support.systemd_units import MOST_EXPOSED, analyze, as_installed_here, install_here, needs_systemd

HOUSEKEEPING = ("formulacode-housekeeping.service", "formulacode-housekeeping.timer")
CONFIG = CELERY / "dagster_celery_config.py"
ELSEWHERE = "redis://elsewhere.example/0"


@pytest.fixture
def worker(tmp_path: Path) -> Path:
    """The unit of a worker that measures."""
    install_here(tmp_path, UNIT)
    return (tmp_path / UNIT.name).rename(tmp_path / "formulacode-worker@measure.service")


@needs_systemd
def test_systemd_takes_the_unit_and_holds_it_tight(worker: Path) -> None:
    verified = analyze("verify", "--man=no", worker)
    assert (verified.returncode, verified.stderr) == (0, "")
    held = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED}", worker)
    assert held.returncode == 0, held.stdout[-300:]


@needs_systemd
def test_systemd_takes_the_housekeeping_of_each_machine_and_holds_it_tight(tmp_path: Path) -> None:
    install_here(tmp_path, *(CELERY / name for name in HOUSEKEEPING))
    verified = analyze("verify", "--man=no", *(tmp_path / name for name in HOUSEKEEPING))
    assert (verified.returncode, verified.stderr) == (0, "")
    held = analyze("security", "--offline=true", f"--threshold={MOST_EXPOSED}", tmp_path / HOUSEKEEPING[0])
    assert held.returncode == 0, held.stdout[-300:]


def test_every_machine_of_workers_cleans_up_after_itself() -> None:
    service, timer = ((CELERY / name).read_text() for name in HOUSEKEEPING)
    assert "ExecStart=/opt/formulacode/venv/bin/fc-data housekeeping --remove\n" in service
    assert "Slice=formulacode.slice\n" in service
    installed = (CELERY / "install.sh").read_text()
    assert all(name in installed for name in HOUSEKEEPING)
    # beyond work that only the leading machine does
    assert f"\nsystemctl enable --now {HOUSEKEEPING[1]}\n" in installed
    assert "OnCalendar=*-*-* " in timer


@pytest.mark.parametrize("name", [UNIT.name, "formulacode-housekeeping.timer"])
def test_what_ends_with_the_platform_starts_with_it(name: str) -> None:
    text = (CELERY / name).read_text()
    (wanted_by,) = re.findall("WantedBy=(.*)", text)
    assert "PartOf=formulacode.target\n" in text
    assert "formulacode.target" in wanted_by.split()


@needs_systemd
def test_systemd_takes_what_services_of_the_platform_are_told_besides(tmp_path: Path) -> None:
    service = tmp_path / "formulacode-health.service"
    service.write_text(as_installed_here((DEPLOY / "systemd" / service.name).read_text()))
    beside = tmp_path / f"{service.name}.d"
    beside.mkdir()
    for path in CELERY.glob("*.conf"):
        (beside / path.name).write_text(as_installed_here(path.read_text()))
    verified = analyze("verify", "--man=no", service)
    assert (verified.returncode, verified.stderr) == (0, "")
    told = beside / "health.conf"
    told.write_text(told.read_text().replace("ExecStart=", "ExecBegin="))
    assert "ExecBegin" in analyze("verify", "--man=no", service).stderr


def told(config: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """The configuration of workers for *config*."""
    monkeypatch.setenv("DAGSTER_CELERY_URL", ELSEWHERE)
    settings = runpy.run_path(str(config))
    return {name: value for name, value in settings.items() if not name.startswith("__") and name != "os"}


def unknown(settings: dict[str, object]) -> set[str]:
    """Those that Celery would ignore without a word."""
    from celery.app.defaults import DEFAULTS

    return settings.keys() - DEFAULTS.keys()


def test_celery_knows_every_setting_of_its_workers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    settings = told(CONFIG, monkeypatch)
    assert settings["broker_url"] == settings["result_backend"] == ELSEWHERE
    assert unknown(settings) == set()
    wrong = tmp_path / "wrong.py"
    wrong.write_text(CONFIG.read_text().replace("task_acks_late", "task_ack_late"))
    assert unknown(told(wrong, monkeypatch)) == {"task_ack_late"}


def test_a_queued_run_waits_without_limit_and_is_never_restarted_halfway() -> None:
    config = dagster_yaml(CELERY)
    monitoring = config["run_monitoring"]
    assert monitoring["max_resume_run_attempts"] == 0, "the executor of one process would begin again, in the same run"
    assert monitoring["start_timeout_seconds"] >= 86400
    assert config["run_launcher"]["config"]["default_queue"] == IO


def test_each_stage_has_a_queue_and_months_go_where_measuring_is_allowed() -> None:
    queues = {stage: run_tags(stage)[QUEUE] for stage in Stage}
    assert [stage for stage, queue in queues.items() if queue == MEASURE] == [
        Stage.MEASUREMENTS,
        Stage.GRADINGS,
        Stage.REPLAYS,
    ]
    assert [stage for stage, queue in queues.items() if queue == BUILD] == [
        Stage.ENVIRONMENTS,
        Stage.IMAGES,
        Stage.PUBLISHED_IMAGES,
    ]
    assert set(queues.values()) == {IO, BUILD, MEASURE}
    assert MONTH_JOB.tags[QUEUE] == MEASURE
    assert f"queues=({IO} {BUILD} {MEASURE})" in (CELERY / "install.sh").read_text()


def test_no_password_is_in_git_and_no_address_leads_beyond_localhost() -> None:
    for path in CELERY.iterdir():
        text = path.read_text() if path.is_file() else ""
        assert set(re.findall(r"://([^/\s]+)/", text)) <= {"127.0.0.1:6379"}, path.name
