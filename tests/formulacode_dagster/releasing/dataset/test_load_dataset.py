"""The released dataset, read by the real `datasets` library from the sandbox's Hub."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from formulacode_dagster.models.month import Month
from formulacode_dagster.models.release import TaskRecord
from formulacode_dagster.releasing.dataset.hub import HubDestination
from formulacode_dagster.releasing.dataset.hub_client import hub_api
from formulacode_dagster.releasing.dataset.tables import data_path, month_tables, verified_path
from formulacode_dagster.releasing.dataset.task_tables import TaskRecords
from sandbox.hub import app
from sandbox.server import serving

NAME, TOKEN = "acme/tasks", "hf_tOkEnOfTheTest"
ROOT = Path(__file__).parents[4]
PYTHON = ROOT / "build/datasets/bin/python"
FIRST_RELEASE = Path(__file__).with_name("first_release.parquet")
DECEMBER, JANUARY, FEBRUARY = (Month.parse(key) for key in ("2025-12", "2026-01", "2026-02"))


def load(url: str, cache: Path, *revisions: str) -> dict[str, Any]:
    settings = {"HF_ENDPOINT": url, "HF_HOME": str(cache), "HF_HUB_DISABLE_XET": "1", "PATH": "/usr/bin:/bin"}
    script = ROOT / "tests/support/load_dataset.py"
    command = [PYTHON, script, NAME, *revisions]
    done = subprocess.run(command, capture_output=True, text=True, env=settings, check=False)
    assert done.returncode == 0, done.stderr[-3_000:]
    loaded: dict[str, Any] = json.loads(done.stdout)
    return loaded


@pytest.mark.slow
@pytest.mark.timeout(900)  # of reading nineteen tables on a busy machine
def test_every_config_loads_as_it_was_at_its_revision(
    records: TaskRecords, record: Callable[..., TaskRecord], tmp_path: Path
) -> None:
    """With a month before them as the first releases held it, whose columns are fewer."""
    if not PYTHON.exists():
        pytest.skip(f"no {PYTHON.relative_to(ROOT)}; run .ci/install-datasets")
    approved = record(8, reviews='[{"verdict": "rejected"}, {"verdict": "approved"}]')
    with serving(app(tmp_path / "hub")) as url:
        # without Xet, which the sandbox's Hub does not have
        api = hub_api(url, TOKEN, 60)
        api.create_repo(NAME, repo_type="dataset")
        for path in (data_path(DECEMBER.key), verified_path(DECEMBER.key)):
            api.upload_file(
                path_or_fileobj=FIRST_RELEASE.read_bytes(), path_in_repo=path, repo_id=NAME, repo_type="dataset"
            )
        destination = HubDestination(NAME, url, TOKEN)
        destination.release(JANUARY, month_tables([TaskRecords(row=record(2))]))
        destination.release(FEBRUARY, month_tables([records]))
        destination.release(
            FEBRUARY, month_tables([records, TaskRecords(row=approved)]), correction="one was forgotten"
        )
        loaded = load(url, tmp_path / "cache", "formulacode@2026-03", "formulacode@2026-03.1")
    first, revised = loaded.values()
    wide = {"workloads", "samples", "tests", "replays", "profiles", "procedures"}
    assert first.keys() == {"default", "verified", "2026-01", "2026-02", *wide}
    assert revised.keys() == {*first, "reviewed"}
    assert first["default"]["ids"] == ["acme__fast-1", "acme__fast-2", "acme__fast-7"]
    assert revised["default"]["ids"] == [*first["default"]["ids"], "acme__fast-8"]
    assert (first["2026-02"]["ids"], revised["2026-02"]["ids"]) == (["acme__fast-7"], ["acme__fast-7", "acme__fast-8"])
    assert revised["verified"]["ids"] == ["acme__fast-1", "acme__fast-2", "acme__fast-8"]
    assert revised["reviewed"]["ids"] == ["acme__fast-8"]
    assert all(revised[name]["ids"] == ["acme__fast-7"] for name in wide)
    assert set(revised["default"]["columns"]) == set(TaskRecord.model_fields)
    assert revised["samples"]["last"]["value"] == 0.25
    assert first["2026-02"]["last"]["patch"] == records.row.patch
    types = revised["default"]["types"]
    assert (types["benchmarks"], types["speedup"]) == ("List(Value('string'))", "Value('float64')")
    assert revised["workloads"]["last"]["executed"] == [{"side": "base", "path": "f.py", "lines": [1, 2]}]
