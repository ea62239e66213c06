"""The benchmark of the site, on few tasks; and that 2,000 tasks fit the first page."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from bench.site_scale import FIRST_PAGE_BYTES_ALLOWED, generate, main
from formulacode_dagster.library.site.registry import task_table


def test_the_benchmark_tells_seconds_and_sizes(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--tasks", "12", "--agents", "2", "--months", "2"])
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (told["tasks"], told["agents"], told["runs"]) == (12, 2, 24)
    assert 0 < told["first_page_bytes"] < FIRST_PAGE_BYTES_ALLOWED
    assert told["seconds"] > 0


@pytest.mark.slow
def test_the_first_page_of_2000_tasks_is_small(tmp_path: Path) -> None:
    dataset = generate(tmp_path / "data", 2000, 12, random.Random(1))  # noqa: S311 - no secret
    static = 45_000
    """Page, style and script, which are measured by the test above."""
    assert len(task_table(dataset, {}).script()) + static < FIRST_PAGE_BYTES_ALLOWED
