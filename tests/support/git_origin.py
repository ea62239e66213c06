from __future__ import annotations

import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from formulacode_dagster.models.pull_request import MergedPullRequest
from formulacode_dagster.sources.git.mirror import Mirror, MirrorCache
from tests.records import make_merged
from tests.support.git_world import BareRepository, git

NAME = "demo/project"
START = datetime(2026, 2, 1, 12, tzinfo=UTC)


class Origin:
    """A real repository with a work tree, and the bare one that is cloned."""

    def __init__(self, folder: Path) -> None:
        self.host = folder / "host"
        self.bare = self.host / f"{NAME}.git"
        self.work = folder / "work"
        self.moment = START

    def begin(self) -> None:
        """Make both, with a first commit."""
        BareRepository(self.bare).write()
        git(self.host.parent, "init", "--quiet", "--template=", "--initial-branch=main", str(self.work))
        # wherever a copy is, git starts below `work`
        self.git("remote", "add", "origin", f"../host/{NAME}.git")
        self.write({"a.py": "one\ntwo\nthree\n", "b.py": "b\n", "docs/c.txt": "c\n"})
        self.commit("Start")
        self.publish()

    @property
    def url(self) -> str:
        return f"file://{self.host}"

    def git(self, *arguments: str, author: str = "Ann <ann@example.org>") -> str:
        name, _, mail = author.partition(" <")
        stamp = self.moment.isoformat()
        who = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": mail.rstrip(">"), "GIT_AUTHOR_DATE": stamp}
        who |= {"GIT_COMMITTER_NAME": "Web", "GIT_COMMITTER_EMAIL": "web@example.org", "GIT_COMMITTER_DATE": stamp}
        return git(self.work, "-c", "protocol.file.allow=always", *arguments, stdin=None, **who)

    def write(self, files: Mapping[str, str | bytes]) -> None:
        for name, content in files.items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, message: str, *, hours: float = 1, author: str = "Ann <ann@example.org>") -> str:
        self.moment += timedelta(hours=hours)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "-m", message, author=author)
        return self.sha()

    def sha(self, name: str = "HEAD") -> str:
        return self.git("rev-parse", name)

    def branch(self, name: str, start: str = "main") -> None:
        self.git("checkout", "--quiet", "-B", name, start)

    def publish(self, *, number: int | None = None, head: str = "") -> None:
        specs = ["+refs/heads/main:refs/heads/main"]
        if number is not None:
            specs.append(f"+{head}:refs/pull/{number}/head")
        self.git("push", "--quiet", "origin", *specs)

    def facts(self, merge: str, **known: object) -> MergedPullRequest:
        given: dict[str, object] = {
            "repository": NAME,
            "number": 7,
            "title": "Merge pull request #1 from nowhere (#2)",
            "merged_at": self.moment,
            "head_sha": "0" * 40,
            "merge_commit_sha": merge,
            "commit_count": 1,
            "changed_files": 1,
        }
        return make_merged(**given | known)


class GitHost:
    """`git http-backend` over real HTTP, with what GitHub lets clients ask for; it writes down every request."""

    def __init__(self, folder: Path) -> None:
        self.requests: list[str] = []
        self.refuse: int | None = None
        """Answer everything with this status."""
        self._folder = folder
        host = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                host.answer(self, b"")

            def do_POST(self) -> None:
                host.answer(self, self._body())

            def _body(self) -> bytes:
                if self.headers.get("transfer-encoding") != "chunked":
                    return self.rfile.read(int(self.headers.get("content-length", 0)))
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                return body

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, handler: BaseHTTPRequestHandler, body: bytes) -> None:
        path, _, query = handler.path.partition("?")
        self.requests.append(f"{handler.command} {path.rpartition('/')[2]}")
        if self.refuse is not None:
            handler.send_response(self.refuse)
            handler.send_header("content-length", "0")
            handler.end_headers()
            return
        environment = {
            "PATH": os.environ["PATH"],
            "GIT_PROJECT_ROOT": str(self._folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": handler.command,
            "CONTENT_TYPE": handler.headers.get("content-type", ""),
            "CONTENT_LENGTH": str(len(body)),
            "HTTP_CONTENT_ENCODING": handler.headers.get("content-encoding", ""),
            "GIT_PROTOCOL": handler.headers.get("git-protocol", ""),
            "GIT_CONFIG_COUNT": "3",
            "GIT_CONFIG_KEY_0": "uploadpack.allowFilter",
            "GIT_CONFIG_VALUE_0": "true",
            "GIT_CONFIG_KEY_1": "uploadpack.allowAnySHA1InWant",
            "GIT_CONFIG_VALUE_1": "true",
            "GIT_CONFIG_KEY_2": "safe.directory",
            "GIT_CONFIG_VALUE_2": "*",
        }
        done = subprocess.run(["git", "http-backend"], env=environment, input=body, capture_output=True, check=False)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n") if ": " in line)
        handler.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            handler.send_header(name, value)
        handler.send_header("content-length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)


@pytest.fixture
def git_host(origin: Origin) -> Iterator[GitHost]:
    host = GitHost(origin.host)
    yield host
    host.close()


@pytest.fixture(scope="session")
def begun_origin(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    """The template of every `origin`: ten processes of git would make each."""
    begun = Origin(tmp_path_factory.mktemp("origin"))
    begun.begin()
    return begun


@pytest.fixture
def origin(begun_origin: Origin, tmp_path: Path) -> Origin:
    copy = Origin(tmp_path)
    for begun, folder in ((begun_origin.host, copy.host), (begun_origin.work, copy.work)):
        shutil.copytree(begun, folder, symlinks=True)
    copy.moment = begun_origin.moment
    return copy


@pytest.fixture
def cache(tmp_path: Path, origin: Origin) -> MirrorCache:
    return MirrorCache(tmp_path / "mirrors", origin.url)


@pytest.fixture
def mirror_of(cache: MirrorCache, origin: Origin) -> Iterator[Callable[..., Mirror]]:
    opened: list[Mirror] = []

    def ensure(*commits: str) -> Mirror:
        origin.publish()
        opened.append(cache.ensure(NAME, commits=commits))
        return opened[-1]

    yield ensure
    for mirror in opened:
        mirror.close()
