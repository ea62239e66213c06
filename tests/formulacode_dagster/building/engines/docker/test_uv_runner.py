"""Source distributions that are read in a container, not on this machine."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from formulacode_dagster.building.engines.docker.engine import DockerEngine
from formulacode_dagster.building.planning.resolution import Unsolvable
from formulacode_dagster.building.planning.resolver import Resolver
from formulacode_dagster.models.errors import ItemFailure
from tests.support.declarations import PackageIndex, resolve
from tests.support.docker import MakeDockerEngine
from tests.support.sampling import ENDED_IN_A_DAEMON, TAKES_MINUTES

pytestmark = [pytest.mark.docker, pytest.mark.network]

AT = datetime(2026, 2, 1, tzinfo=UTC)

PYPROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
TELLS = """
import os, sys


def prepare_metadata_for_build_wheel(folder, settings=None):
    info = os.path.join(folder, "told-1.0.dist-info")
    os.mkdir(info)
    with open(os.path.join(info, "METADATA"), "w") as file:
        needed = "attrs" if sys.version_info[:2] == (3, 12) else "numpy"
        file.write(f"Metadata-Version: 2.1\\nName: told\\nVersion: 1.0\\nRequires-Dist: {needed}\\n")
    return "told-1.0.dist-info"


def build_wheel(folder, settings=None, metadata=None):
    raise SystemExit("never built")
"""
LOOKS_AROUND = """
import json, os, pathlib


def prepare_metadata_for_build_wheel(folder, settings=None):
    secret, planted = map(pathlib.Path, json.loads(os.path.expandvars('''PLACES''')))
    tried = []
    for path in (planted, pathlib.Path("/opt/formulacode/bin/planted"), pathlib.Path("/etc/planted")):
        try:
            path.write_text("planted")
            tried.append(str(path))
        except OSError:
            pass
    raise SystemExit("FACTS" + json.dumps({
        "user": os.getuid(),
        "variables": sorted(os.environ),
        "socket": os.path.exists("/var/run/docker.sock"),
        "secret": secret.exists(),
        "written": tried,
    }) + "END")
"""
HANGS = "import time\n\n\ndef prepare_metadata_for_build_wheel(folder, settings=None):\n    time.sleep(600)\n"
FORGES = """
import pathlib, os


def prepare_metadata_for_build_wheel(folder, settings=None):
    answer = pathlib.Path.home() / "answer"
    (answer / "rc").symlink_to("/etc/passwd")
    (answer / "pylock.toml").symlink_to("/etc/passwd")
    raise SystemExit(1)
"""


@pytest.fixture(scope="module")
def engine(make_docker_engine: MakeDockerEngine) -> DockerEngine:
    """One whose builds see the index on localhost."""
    return make_docker_engine(network="host")


@pytest.fixture
def reader(engine: DockerEngine, index: PackageIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Resolver:
    monkeypatch.setenv("HF_TOKEN", "hunter2")
    settings = {"PATH": os.environ["PATH"], "UV_DEFAULT_INDEX": index.url, "UV_HTTP_RETRIES": "0"}
    return Resolver(tmp_path / "cache", environment=settings, reading=engine.uv_runner(), timeout=120)


@pytest.fixture
def secret(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "secret"
    path.write_text("hunter2")
    yield path
    assert path.read_text() == "hunter2"


def hanging() -> list[str]:
    """Command lines of processes that call a backend; the daemon is that of this machine."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            lines.append(path.read_bytes().replace(b"\0", b" ").decode(errors="replace"))
    return [line for line in lines if "prepare_metadata_for_build_wheel" in line]


def publish(index: PackageIndex, name: str, backend: str) -> None:
    files = {"pyproject.toml": PYPROJECT, "backend.py": backend}
    index.publish_source(name, "1.0", "2026-01-05T00:00:00Z", files=files)


def test_what_it_needs_is_told_by_its_own_interpreter_and_kept(reader: Resolver, index: PackageIndex) -> None:
    publish(index, "told", TELLS)
    first = resolve(reader, ["told"], python="3.12", exclude_newer=AT, build_sources=True)
    assert [line.split(" ")[0] for line in first.lock.splitlines() if "==" in line] == ["attrs==2.0", "told==1.0"]
    calls = reader.calls
    assert resolve(reader, ["told"], python="3.12", exclude_newer=AT, build_sources=True) == first
    assert reader.calls == calls


def test_its_code_sees_nothing_of_this_machine(
    reader: Resolver, index: PackageIndex, secret: Path, tmp_path: Path
) -> None:
    planted = tmp_path / "planted"
    publish(index, "nosy", LOOKS_AROUND.replace("PLACES", json.dumps([str(secret), str(planted)])))
    with pytest.raises(Unsolvable) as caught:
        resolve(reader, ["nosy"], python="3.12", exclude_newer=AT, build_sources=True)
    assert caught.value.refusal.unbuildable == ("nosy",)
    told = re.search(r"FACTS(.*)END", " ".join(caught.value.log_tail.split()))
    assert told is not None
    facts = json.loads(told[1])
    assert (facts["user"], facts["socket"], facts["secret"], facts["written"]) == (1000, False, False, [])
    assert not {"HF_TOKEN", "GH_TOKENS", "DOCKER_HOST"} & set(facts["variables"])
    assert not planted.exists()


def test_a_bad_answer_file_fails_its_item_and_no_stage(reader: Resolver, index: PackageIndex) -> None:
    publish(index, "forger", FORGES)
    with pytest.raises(ItemFailure, match=r"reading source distributions with Python 3\.12") as caught:
        resolve(reader, ["forger"], python="3.12", exclude_newer=AT, build_sources=True)
    assert caught.value.kind == "build"
    assert "root:" not in str(caught.value)


@ENDED_IN_A_DAEMON
def test_one_that_hangs_is_a_timeout_and_is_gone(engine: DockerEngine, index: PackageIndex, tmp_path: Path) -> None:
    publish(index, "hanging", HANGS)
    settings = {"PATH": os.environ["PATH"], "UV_DEFAULT_INDEX": index.url, "UV_HTTP_RETRIES": "0"}
    reader = Resolver(tmp_path, environment=settings, reading=engine.uv_runner(), timeout=15)
    with pytest.raises(ItemFailure) as caught:
        resolve(reader, ["hanging"], python="3.12", exclude_newer=AT, build_sources=True)
    assert caught.value.kind == "timeout"
    deadline = time.monotonic() + 30
    while (left := hanging()) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert not left


@TAKES_MINUTES.with_args(case="uv")
def test_the_real_index_gives_the_lock_that_this_machine_would_give(
    make_docker_engine: MakeDockerEngine, tmp_path: Path
) -> None:
    at = datetime(2021, 6, 1, tzinfo=UTC)
    engine = make_docker_engine()
    asked = {"python": "3.9", "exclude_newer": at, "build_sources": True}
    inside = resolve(Resolver(tmp_path / "in", reading=engine.uv_runner()), ["docopt"], **asked)
    assert inside.lock == resolve(Resolver(tmp_path / "out"), ["docopt"], **asked).lock
