"""Hand-made repositories for the tests of this part."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from uv import find_uv_bin

from formulacode_dagster.building.declarations.tree import Tree
from formulacode_dagster.building.planning.resolution import Resolution, ResolutionRequest
from formulacode_dagster.building.planning.resolver import Resolver
from formulacode_dagster.models.pull_request import PullRequest
from tests.records import make_merged, make_pull_request

BASE = "b" * 40
MERGE = "a" * 40


class DictReader:
    """A `CommitReader` over commit → path → text."""

    def __init__(self, commits: Mapping[str, Mapping[str, str]]) -> None:
        self._commits = commits

    def read(self, commit: str, path: str) -> bytes | None:
        text = self._commits.get(commit, {}).get(path)
        return None if text is None else text.encode()

    def list(self, commit: str, folder: str = "") -> list[str]:
        return sorted(path for path in self._commits.get(commit, {}) if path.startswith(folder))

    def complete(self, *commits: str, folder: str = "") -> None:
        """All is at hand."""

    def require(self, *commits: str) -> None:
        """Nothing is missing."""

    def anchor(self, base_sha: str, before: datetime) -> str:
        return base_sha

    def submodules(self, commit: str) -> dict[str, str]:
        """The `.gitmodules` of these readers names them with their commits, as `sha = …`."""
        text = self._commits.get(commit, {}).get(".gitmodules", "")
        values = dict(line.split(" = ") for line in text.splitlines() if " = " in line)
        return {values["path"]: values["sha"]} if "sha" in values else {}

    def later(self, commit: str, *patterns: str) -> tuple[str, ...]:
        known = list(self._commits)
        return tuple(sha for sha in known[known.index(commit) + 1 :] if sha not in (BASE, MERGE) and patterns)


@pytest.fixture
def reader_of() -> Callable[..., DictReader]:
    """A reader from the files of the base and, where they differ, of the merge commit and of commits after it."""

    def build(base: Mapping[str, str], merge: Mapping[str, str] | None = None, *later: Mapping[str, str]) -> DictReader:
        after = {str(number) * 40: files for number, files in enumerate(later, 1)}
        return DictReader({BASE: base, MERGE: base if merge is None else merge, **after})

    return build


@pytest.fixture
def tree_of() -> Callable[..., Tree]:
    """The tree of a commit with the files given."""

    def build(files: Mapping[str, str]) -> Tree:
        return Tree(DictReader({BASE: files}), BASE)

    return build


@pytest.fixture
def pull_request() -> Callable[..., PullRequest]:
    """A pull request merged at the instant given."""

    def build(merged_at: datetime = datetime(2026, 1, 15, tzinfo=UTC)) -> PullRequest:
        facts = make_merged(
            month=f"{merged_at:%Y-%m}",
            repository_id=7,
            repository="acme/fast",
            number=12,
            created_at=merged_at,
            merged_at=merged_at,
            merge_commit_sha=MERGE,
        )
        return make_pull_request(facts, base_sha=BASE)

    return build


class PackageIndex:
    """A package index on localhost: PEP 691 pages over hand-made wheels, as `uv` asks for them."""

    def __init__(self) -> None:
        self.projects: dict[str, list[dict[str, object]]] = {}
        self.files: dict[str, bytes] = {}
        self.answer = 200
        self.refused = ""
        self.pause = 0.0
        self.requests = 0
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/simple"

    def publish(
        self, name: str, version: str, uploaded: str, requires: tuple[str, ...] = (), *, tag: str = "py3-none-any"
    ) -> None:
        wheel = f"{name.replace('-', '_')}-{version}"
        info = f"{wheel}.dist-info"
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        metadata = "\n".join([*lines, *(f"Requires-Dist: {item}" for item in requires)]) + "\n"
        content = io.BytesIO()
        with zipfile.ZipFile(content, "w") as archive:
            archive.writestr(f"{info}/METADATA", metadata)
            archive.writestr(f"{info}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n")
            archive.writestr(f"{info}/RECORD", "")
        self._add(name, f"{wheel}-{tag}.whl", content.getvalue(), uploaded)
        self.files[f"{wheel}-{tag}.whl.metadata"] = metadata.encode()

    def publish_source(
        self, name: str, version: str, uploaded: str, setup: str = "", files: Mapping[str, str] | None = None
    ) -> None:
        """Without *setup* and *files* its metadata is static, so that reading it builds nothing."""
        content = io.BytesIO()
        with tarfile.open(fileobj=content, mode="w:gz") as archive:
            metadata = f"Metadata-Version: {'1.0' if setup or files else '2.2'}\nName: {name}\nVersion: {version}\n"
            for path, text in {"setup.py": setup, "PKG-INFO": metadata, **(files or {})}.items():
                entry = tarfile.TarInfo(f"{name}-{version}/{path}")
                entry.size = len(text.encode())
                archive.addfile(entry, io.BytesIO(text.encode()))
        self._add(name, f"{name}-{version}.tar.gz", content.getvalue(), uploaded)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _add(self, name: str, filename: str, content: bytes, uploaded: str) -> None:
        self.files[filename] = content
        file = {
            "filename": filename,
            "url": f"{self.url.removesuffix('/simple')}/files/{filename}",
            "hashes": {"sha256": sha256(content).hexdigest()},
            "upload-time": uploaded,
            "core-metadata": filename.endswith(".whl"),
        }
        self.projects.setdefault(name, []).append(file)

    def _handler(index) -> type[BaseHTTPRequestHandler]:
        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                index.requests += 1
                time.sleep(index.pause)
                parts = self.path.strip("/").split("/")
                body = None
                if parts[0] == "simple" and parts[-1] in index.projects:
                    page = {"meta": {"api-version": "1.1"}, "name": parts[-1], "files": index.projects[parts[-1]]}
                    body = json.dumps(page).encode()
                elif parts[0] == "files":
                    body = index.files.get(parts[-1])
                if parts[-1] == index.refused:
                    body = None
                missing = 403 if parts[-1] == index.refused else 404
                status = index.answer if index.answer != 200 else 200 if body is not None else missing
                self.send_response(status)
                kind = "application/vnd.pypi.simple.v1+json" if parts[0] == "simple" else "application/octet-stream"
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(body or b"")))
                self.end_headers()
                self.wfile.write(body or b"")

            def log_message(self, *arguments: object) -> None:
                pass

        return Handler


@pytest.fixture
def index() -> Iterator[PackageIndex]:
    """A package index with a few projects, each with the day it was uploaded."""
    served = PackageIndex()
    for version, day in (
        ("30.0", "2018-01-01"),
        ("41.0", "2019-02-15"),
        ("80.0", "2025-06-01"),
        ("99.0", "2026-06-01"),
    ):
        served.publish("setuptools", version, f"{day}T00:00:00Z")
    served.publish("wheel", "0.30", "2017-01-01T00:00:00Z")
    served.publish("attrs", "1.0", "2018-01-01T00:00:00Z")
    served.publish("attrs", "2.0", "2026-01-10T00:00:00Z")
    served.publish("numpy", "1.26", "2025-01-01T00:00:00Z")
    served.publish("numpy", "2.1", "2025-06-01T00:00:00Z")
    served.publish("scipy", "1.0", "2025-01-01T00:00:00Z", ("numpy<2",))
    served.publish("late", "1.0", "2028-02-01T00:00:00Z")
    yield served
    served.close()


@pytest.fixture(scope="session")
def uv_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of uv's that knows this interpreter: asking it takes several times as long as most resolutions here."""
    folder = tmp_path_factory.mktemp("uv")
    command = [find_uv_bin(), "--no-config", "--offline", "--cache-dir", str(folder)]
    command += ["pip", "compile", "--quiet", "--python", sys.executable, "-"]
    subprocess.run(command, input=b"", check=True, capture_output=True)
    return folder


@pytest.fixture
def resolver(index: PackageIndex, uv_cache: Path, tmp_path: Path) -> Resolver:
    """A real uv that asks the index on localhost."""
    shutil.copytree(uv_cache, tmp_path / "cache" / "uv")
    settings = {"PATH": os.environ["PATH"], "UV_DEFAULT_INDEX": index.url, "UV_HTTP_RETRIES": "0"}
    return Resolver(tmp_path / "cache", environment=settings, timeout=60)


def resolve(
    resolver: Resolver,
    requirements: Iterable[str],
    *,
    settled_at: datetime | None = None,
    build_sources: bool = False,
    **asked: Any,
) -> Resolution:
    """The answer of *resolver* to a question in words."""
    request = ResolutionRequest(requirements=tuple(requirements), reads_sources=build_sources, **asked)
    return resolver.resolve(request, settled_at=settled_at)
