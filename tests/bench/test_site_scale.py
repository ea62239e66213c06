"""The benchmark of the site, on few tasks; and that 2,000 tasks fit the first page."""

from __future__ import annotations

import json
import random
from importlib.resources import files

import pytest

from bench.site_scale import FIRST_PAGE_BYTES_ALLOWED, main, varied
from formulacode_dagster.library.site.registry import tasks_of
from formulacode_dagster.models.month import Month


def test_the_benchmark_tells_seconds_and_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--tasks", "12", "--agents", "2", "--months", "2"])
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["tasks"], told["agents"], told["runs"]) == (12, 2, 24)
    assert 0 < told["first_page_bytes"] < FIRST_PAGE_BYTES_ALLOWED
    assert told["seconds"] > 0


def test_the_first_page_of_2000_tasks_is_small() -> None:
    chance, month, rows = random.Random(1), Month.parse("2025-01"), []  # noqa: S311 - no secret
    for number in range(2000):
        month = month.next() if number % 167 == 166 else month
        own = varied(number, month, chance)
        told = {
            "month": month.key,
            "merged": own["pr_merged_at"].date().isoformat(),
            "workloads": own["workload_source"],
        }
        same = {"replays": "not replayed", "reviews": "not reviewed", "verified": "verified"}
        rows.append({**own, **told, **same})
    style = files("formulacode_dagster.releasing.reporting").joinpath("static", "style.css").read_text("utf-8")
    script = files("formulacode_dagster.library.site").joinpath("static", "site.js").read_text("utf-8")
    page = 5_000
    assert len(tasks_of(rows).script()) + len(style) + len(script) + page < FIRST_PAGE_BYTES_ALLOWED
