"""The Dagster UI over the demo's instance, as a person sees it in a browser."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import time
from pathlib import Path

import pytest

from assets.all import ASSETS
from formulacode_dagster.orchestration.operations import operations
from tests.support.browser import require_browser
from tests.support.expected_outcomes import expected_outcomes
from tests.support.samples import DEMO
from tests.support.sampling import TAKES_MINUTES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

HERE = Path(__file__).parent
MONTH = "2026-02"


@pytest.fixture(scope="module")
def screenshots(tmp_path_factory) -> Path:
    named = os.environ.get("FC_SCREENSHOTS")
    return Path(named).absolute() if named else tmp_path_factory.mktemp("screenshots")


@pytest.fixture(scope="module")
def seen(request, screenshots):
    """A browser's findings on the pages of the UI."""
    require_browser()
    # only now: without a browser no test should wait for the demo
    ui = request.getfixturevalue("ui")
    node = ["node", str(HERE / "ui.mjs"), "tour", ui.url, MONTH, str(screenshots)]
    toured = subprocess.run(node, capture_output=True, text=True, timeout=600, check=False)
    assert toured.returncode == 0, toured.stderr
    return json.loads(toured.stdout)


def test_the_asset_graph_shows_every_group_and_every_asset(seen) -> None:
    assert set(seen["groups"]) == {"intake", "selection", "build", "measure", "release", "dashboards", "operations"}
    assert sorted(seen["assets"]) == sorted(asset.key.to_user_string() for asset in [*ASSETS, operations])


def test_an_asset_says_what_one_row_is_and_what_its_columns_are(seen) -> None:
    assert "One row is" in seen["overview"]
    assert "geometric mean of base / oracle over all relevant benchmarks" in seen["overview"]


def test_a_month_that_was_materialized_is_green(seen) -> None:
    assert seen["partition"]["status"] == "Materialized"
    red, green, blue = map(int, seen["partition"]["dot"].removeprefix("rgb(").removesuffix(")").split(","))
    assert green > 1.5 * max(red, blue)


def test_the_result_of_a_check_can_be_read(seen) -> None:
    assert "This is a blocking asset check." in seen["check"]
    assert "As many merged pull requests are stored as GitHub reports, repository by repository." in seen["check"]
    items = [each.item for each in expected_outcomes(MONTH, DEMO) if "#" in each.item]
    repositories = {item.partition("#")[0] for item in items}
    told = f"{len(items)} of the {len(items)} pull requests that GitHub reports, in {len(repositories)} repositories"
    assert told in seen["check"]
    assert "Passed" in seen["check"]


def test_the_report_shows_its_funnel_as_a_picture(seen) -> None:
    assert seen["picture"]["complete"]
    assert seen["picture"]["png"]
    assert seen["picture"]["width"] > 600
    assert seen["picture"]["height"] > 300


def test_the_ui_raises_no_error_and_asks_nobody_else(seen) -> None:
    assert seen["failures"] == []


def test_every_page_was_photographed(seen, screenshots) -> None:
    for name in ("asset-graph", "asset", "partition", "check", "report", "funnel"):
        assert (screenshots / f"{name}.png").stat().st_size > 20_000


def test_the_picture_of_the_asset_graph_in_the_readme_can_be_drawn_again(seen, ui, tmp_path) -> None:
    picture = tmp_path / "asset-graph.png"
    drawn = subprocess.run(
        ["node", str(HERE / "ui.mjs"), "graph", ui.url, str(picture)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert drawn.returncode == 0, drawn.stderr
    width, height = _size(picture)
    shown_width, shown_height = _size(HERE.parents[1] / "docs" / "asset-graph.png")
    assert width / height == pytest.approx(shown_width / shown_height, rel=0.1)


@TAKES_MINUTES
def test_the_ui_ends_on_sigterm_with_its_run_and_all_processes(new_home, serve_ui) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with serve_ui(new_home, GITHUB_API_URL=address, GH_TOKENS="none") as served:
            # a run opens the embedded Postgres from a process of its own
            done = served.launch(one_stage("monthly_report", dry_run=True))
            assert served.wait_for_run(done) == "SUCCESS"
            run = served.launch(one_stage("repositories"))
            silent.settimeout(120)
            asked, _ = silent.accept()
            with asked:
                assert served.wait_for_run(run, seconds=0) == "STARTED"
                assert len(processes_of(new_home.home)) > 5
    assert served.process.returncode == 0, served.log.read_text()[-3000:]
    assert processes_of(new_home.home) == []
    with sqlite3.connect(new_home.home / "dagster" / "history" / "runs.db") as connection:
        ends = connection.execute("SELECT run_id, status FROM runs").fetchall()
    # it is not shown as running for ever
    assert sorted(ends) == sorted([(done, "SUCCESS"), (run, "CANCELED")])
    with sqlite3.connect(new_home.home / "dagster" / "history" / "runs" / "index.db") as connection:
        slots = connection.execute("SELECT run_id FROM concurrency_slots WHERE run_id IS NOT NULL").fetchall()
        assert slots + connection.execute("SELECT run_id FROM pending_steps").fetchall() == []


@TAKES_MINUTES
def test_kill_9_leaves_no_process_and_no_run_in_progress(new_home, serve_ui) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with serve_ui(new_home, GITHUB_API_URL=address, GH_TOKENS="none") as served:
            run = served.launch(one_stage("repositories"))
            silent.settimeout(120)
            asked, _ = silent.accept()
            with asked:
                assert len(processes_of(new_home.home)) > 5
                served.process.kill()
                deadline = time.monotonic() + 120
                while processes_of(new_home.home) and time.monotonic() < deadline:
                    time.sleep(0.2)
    assert processes_of(new_home.home) == [], "the embedded Postgres included"
    with sqlite3.connect(new_home.home / "dagster" / "history" / "runs.db") as connection:
        assert connection.execute("SELECT run_id, status FROM runs").fetchall() == [(run, "CANCELED")]
    with sqlite3.connect(new_home.home / "dagster" / "history" / "runs" / "index.db") as connection:
        slots = connection.execute("SELECT run_id FROM concurrency_slots WHERE run_id IS NOT NULL").fetchall()
        assert slots + connection.execute("SELECT run_id FROM pending_steps").fetchall() == []


def test_a_port_that_is_taken_is_one_clear_message(call_fc_data) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        refused = call_fc_data("dev", "--port", str(taken.getsockname()[1]))
    assert refused.returncode == 1
    assert "--port" in refused.stderr
    assert "Traceback" not in refused.stderr


def one_stage(stage: str, **config: object) -> dict[str, object]:
    """Parameters of a launch of one stage of the month."""
    return {
        "selector": {
            "repositoryLocationName": "formulacode",
            "repositoryName": "__repository__",
            "pipelineName": f"{stage}_only",
        },
        "runConfigData": json.dumps({"ops": {stage: {"config": config}}}),
        "executionMetadata": {"tags": [{"key": "dagster/partition", "value": MONTH}]},
        "mode": "default",
    }


def processes_of(home: Path) -> list[str]:
    """Command lines of the processes that use *home*: it is in their environment or in their arguments."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            arguments = (process / "cmdline").read_bytes()
            environment = (process / "environ").read_bytes()
        except OSError:
            continue
        if arguments and bytes(home) in arguments + environment:
            found.append(arguments.replace(b"\0", b" ").decode(errors="replace"))
    return found


def _size(png: Path) -> tuple[int, int]:
    header = png.read_bytes()[:24]
    return int.from_bytes(header[16:20], "big"), int.from_bytes(header[20:24], "big")
