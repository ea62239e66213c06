"""Metrics for Prometheus."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.monitoring.metrics import metrics_server
from formulacode_dagster.operating.monitoring.operations import Operations, ResourceUsage, RunCounts, SharedStageStatus

NOW = Operations(
    taken_at=datetime(2026, 3, 1, tzinfo=UTC),
    runs=RunCounts(queued=1, under_way=2, failed=3),
    queues=(SharedStageStatus(stage=Stage.IMAGES, month="2026-02", free=7),),
    items={"done": 10, "failed": 4},
    budgets=(ResourceUsage(what="2026-02", used=2.5, limit=10, unit="dollars"),),
    disks=(ResourceUsage(what="database", used=1e9, limit=None, unit="bytes"),),
    mirrors=5,
    mirrors_unused_days=3.5,
    backup_hours=None,
)


def test_every_figure_is_a_gauge_looked_at_anew_at_each_scrape() -> None:
    looked: list[int] = []

    def look() -> Operations:
        looked.append(1)
        return NOW

    with metrics_server("127.0.0.1", 0, look) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        answers = [httpx.get(f"http://127.0.0.1:{server.server_port}/metrics") for _ in range(2)]
        server.shutdown()
        thread.join()
    assert len(looked) == 2
    families = list(text_string_to_metric_families(answers[1].text))
    assert {family.type for family in families} == {"gauge"}
    samples = {
        (it.name, *(it.labels[name] for name in sorted(it.labels))): it.value
        for family in families
        for it in family.samples
    }
    assert samples == {
        ("formulacode_runs", "queued"): 1,
        ("formulacode_runs", "under_way"): 2,
        ("formulacode_runs", "failed"): 3,
        ("formulacode_items", "done"): 10,
        ("formulacode_items", "failed"): 4,
        ("formulacode_items_free", "2026-02", "images"): 7,
        ("formulacode_used", "dollars", "2026-02"): 2.5,
        ("formulacode_used", "bytes", "database"): 1e9,
        ("formulacode_limit", "dollars", "2026-02"): 10,
        ("formulacode_mirrors",): 5,
        ("formulacode_mirrors_unused_days",): 3.5,
    }


def test_a_port_that_is_taken_is_named() -> None:
    with (
        metrics_server("127.0.0.1", 0, lambda: NOW) as server,
        pytest.raises(ConfigurationError, match=r"cannot listen on 127\.0\.0\.1"),
    ):
        metrics_server("127.0.0.1", server.server_port, lambda: NOW)
