"""`fc-data dashboards`, as a person types it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import polars as pl
import pytest

from tests.support.asv_results import write_results
from tests.support.asv_site import GRAPHS, GRID, PLAIN, write_site
from tests.support.command_line import FcData
from tests.support.documents import blocks_of
from tests.support.git_world import BareRepository


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """A static file server of a site."""
    write_site(tmp_path / "served")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path / "served")))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.mark.slow
def test_a_site_becomes_tables_steps_commits_and_a_picture(call_fc_data: FcData, tmp_path: Path) -> None:
    write_site(tmp_path / "path" / "to" / "site")
    ran = call_fc_data("dashboards", "scrape", "path/to/site", "tables")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "sample: 3 of 3 graphs that its index allows for, 3 of 3 summaries; 4 series, 48 points" in ran.stdout
    ran = call_fc_data("dashboards", "steps", "tables")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "4 series, 2 steps, 1 commits, by seeded" in ran.stdout
    assert f"{110:040x}"[:10] in ran.stdout
    (commit,) = pl.read_parquet("tables/commits.parquet").iter_rows(named=True)
    assert (commit["before_hash"], commit["after_hash"]) == (f"{110:040x}", f"{112:040x}")
    assert (commit["improved"], commit["regressed"], commit["median_ratio"]) == (2, 0, 0.5)
    steps = pl.read_parquet("tables/steps.parquet")
    assert steps.select("benchmark", "parameters").rows() == [(PLAIN, []), (GRID, ["1", "'a'"])]
    assert Path("tables/steps.png").read_bytes().startswith(b"\x89PNG")


def test_a_site_is_scraped_over_http_and_only_new_files_are_requested(
    address: str, call_fc_data: FcData, tmp_path: Path
) -> None:
    ran = call_fc_data("dashboards", "scrape", address, "tables")
    assert ran.returncode == 0, ran.stderr
    assert "11 requests: 8 files fetched, 0 as before" in ran.stdout
    ran = call_fc_data("dashboards", "scrape", address, "tables")
    assert "3 requests: 0 files fetched, 8 as before" in ran.stdout
    shutil.rmtree(tmp_path / "tables" / "site" / "graphs")
    assert "6 files fetched, 2 as before" in call_fc_data("dashboards", "scrape", address, "tables").stdout
    assert pl.read_parquet("tables/points.parquet").height == 48


@pytest.mark.slow
def test_the_five_minutes_of_the_readme(tmp_path: Path) -> None:
    """As they are written, but for the host that the site is cloned from, and the port."""
    (block,) = (block for block in blocks_of("bash") if "http.server" in block)
    host = tmp_path / "host" / "sunpy" / "sunpy-benchmarks"
    branch = BareRepository(host)
    written = write_site(tmp_path / "published")
    content = {str(path.relative_to(written)): path.read_bytes() for path in written.rglob("*.json")}
    branch.ref("refs/heads/gh-pages", branch.commit("Publish", files=content))
    branch.write()
    (tmp_path / ".venv").symlink_to(sys.prefix)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    ran = subprocess.run(
        # the server ends also where something before its end fails
        ["bash", "-e", "-c", "trap 'kill $! || true' EXIT\n" + block.replace("8000", port)],
        cwd=tmp_path,
        env={
            **{name: os.environ[name] for name in ("PATH", "SSL_CERT_FILE") if name in os.environ},
            "HOME": str(tmp_path),
            "FC_HOME": str(tmp_path / "home"),
            "GIT_CONFIG_COUNT": "1",
            "GIT_CONFIG_KEY_0": f"url.{(tmp_path / 'host').as_uri()}/.insteadOf",
            "GIT_CONFIG_VALUE_0": "https://github.com/",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert "sample: 3 of 3 graphs" in ran.stdout
    assert "4 series, 2 steps, 1 commits, by seeded" in ran.stdout
    assert (tmp_path / "tables" / "steps.png").read_bytes().startswith(b"\x89PNG")


def test_a_site_is_scraped_by_its_name(call_fc_data: FcData, tmp_path: Path) -> None:
    write_site(tmp_path / "served")
    assert call_fc_data("dashboards", "add", f"file://{tmp_path}/served", "--name", "sample").returncode == 0
    assert "sample" in call_fc_data("dashboards", "sites").stdout
    assert "3 of 3 graphs" in call_fc_data("dashboards", "scrape", "sample", "tables").stdout


def test_what_is_missing_or_broken_is_named(call_fc_data: FcData, tmp_path: Path) -> None:
    graph = f"{GRAPHS}/{PLAIN}.json"
    write_site(tmp_path / "site", **{graph: b"<html>", f"{GRAPHS}/{GRID}.json": None})
    ran = call_fc_data("dashboards", "scrape", f"file://{tmp_path}/site", "tables")
    assert "1 of 3 graphs" in ran.stdout
    assert f"2 benchmarks have no graph: {GRID}, {PLAIN}" in ran.stdout
    assert f"html: 1: {graph}" in ran.stdout
    assert pl.read_parquet("tables/faults.parquet")["kind"].to_list() == ["html", "absent"]


def test_no_site_and_no_tables_say_what_to_do(call_fc_data: FcData) -> None:
    ran = call_fc_data("dashboards", "scrape", "nowhere", "tables")
    assert ran.returncode == 1
    assert "cannot read index.json of nowhere: absent" in ran.stderr
    ran = call_fc_data("dashboards", "steps", "tables")
    assert ran.returncode == 1
    assert "Write it first: fc-data dashboards scrape SITE tables" in ran.stderr


@pytest.mark.slow
def test_a_site_without_steps_has_a_picture_all_the_same(call_fc_data: FcData, tmp_path: Path) -> None:
    write_site(tmp_path / "site", **{f"{GRAPHS}/{PLAIN}.json": None, f"{GRAPHS}/{GRID}.json": None})
    call_fc_data("dashboards", "scrape", "site", "tables")
    ran = call_fc_data("dashboards", "steps", "tables")
    assert "1 series, 0 steps, 0 commits" in ran.stdout
    assert Path("tables/steps.png").exists()


@pytest.mark.slow
def test_raw_results_become_a_site_like_any_other(call_fc_data: FcData, tmp_path: Path) -> None:
    write_site(tmp_path / "published")
    write_results(tmp_path / "raw", [f"{100 + 2 * number:040x}" for number in range(12)], **{"i7/broken.json": b"{"})
    ran = call_fc_data("dashboards", "collate", "raw", "own")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "raw: 3 of 3 graphs that its index allows for" in ran.stdout
    assert "truncated: 1: i7/broken.json" in ran.stdout
    assert "ordered by the dates" in ran.stdout
    assert "3 of 3 graphs" in call_fc_data("dashboards", "scrape", "own/site", "again").stdout
    call_fc_data("dashboards", "scrape", "published", "theirs")
    for folder in ("own", "theirs"):
        assert "2 steps, 1 commits" in call_fc_data("dashboards", "steps", folder).stdout
    ran = call_fc_data("dashboards", "replicate", "theirs", "own", "compared")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "1 breakpoints of both, 0 of theirs alone, 0 of own alone; 2 steps of both" in ran.stdout
    assert PLAIN in Path("compared/replication.html").read_text()
    assert pl.read_parquet("compared/replication.parquet")["other_ratio"].to_list() == [0.5, 0.5]
