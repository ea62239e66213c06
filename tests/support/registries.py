"""Registries with authentication, rate limits and faults; and the real one, with a lock on it."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from formulacode_dagster.models.image import BuiltImage
from formulacode_dagster.releasing.registries.client import Limits
from formulacode_dagster.releasing.registries.manifests import DOCKER_MANIFEST, Descriptor, ImageManifest
from tests.support.certificates import make_certificate

MONTH = "2026-02"
USER, PASSWORD = "someone", "dckr_pat_SecretOfTheTest"
MakeImage = Callable[..., BuiltImage]
Answer = Callable[[Scope], Response | None]

# of the two passwords by bcrypt, the only hash that the registry takes; the second is what moto gives out for ECR
_HTPASSWD = f"""{USER}:$2b$04$nccW8S3jiKLhekj57KHQcOVOK4qLjt9KNxq8aC9RCIrx.5BzHnuyu
AWS:$2b$04$rydTM08wa.wy3/QUESGfJO93ZZJ1TxCxHEUcw3zJrwZZHfFLcCBAS
"""


def in_front(app: ASGIApp, answer: Answer) -> ASGIApp:
    """*app*, where *answer* has none of its own."""

    async def fronted(scope: Scope, receive: Receive, send: Send) -> None:
        given = answer(scope) if scope["type"] == "http" else None
        await (given or app)(scope, receive, send)

    return fronted


def header_of(scope: Scope, name: str) -> str:
    """A header of a request."""
    headers: dict[bytes, bytes] = dict(scope["headers"])
    return headers.get(name.encode(), b"").decode()


def basic(user: str = USER, password: str = PASSWORD) -> str:
    """The header of *user*."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


def image_of(config: Descriptor, *layers: Descriptor) -> ImageManifest:
    """The manifest of an image that was pushed blob by blob."""
    document = {"schemaVersion": 2, "mediaType": DOCKER_MANIFEST, "config": config.document}
    document["layers"] = [layer.document for layer in layers]
    return ImageManifest.of(json.dumps(document).encode(), DOCKER_MANIFEST)


def refusal(status: int, code: str, **headers: str) -> Response:
    """A registry's answer to what it does not do."""
    error = {"errors": [{"code": code, "message": code.lower(), "detail": None}]}
    return JSONResponse(error, status, {name.replace("_", "-"): value for name, value in headers.items()})


def guarded(app: ASGIApp) -> ASGIApp:
    """*app* behind a user name and a password."""
    challenge = refusal(401, "UNAUTHORIZED", WWW_Authenticate='Basic realm="test"')
    return in_front(app, lambda scope: None if header_of(scope, "authorization") == basic() else challenge)


def with_tokens(app: ASGIApp, *, is_public: bool) -> ASGIApp:
    """*app* as Docker Hub has it: tokens for what one may do, and strangers may pull where it *is_public*."""

    def answer(scope: Scope) -> Response | None:
        query = dict(httpx.QueryParams(scope["query_string"].decode()))
        if scope["path"] == "/token":
            is_owner = header_of(scope, "authorization") == basic()
            if header_of(scope, "authorization") and not is_owner:
                return refusal(401, "UNAUTHORIZED")
            rights = "push" if is_owner and "push" in query["scope"] else "pull" if is_owner or is_public else "none"
            return JSONResponse({"token": rights})
        if scope["path"].startswith("/_sandbox"):
            return None
        needed = ("push", "pull") if scope["method"] in ("GET", "HEAD") else ("push",)
        if header_of(scope, "authorization").removeprefix("Bearer ") in needed:
            return None
        host = header_of(scope, "host")
        return refusal(401, "UNAUTHORIZED", WWW_Authenticate=f'Bearer realm="http://{host}/token",service="test"')

    return in_front(app, answer)


class Trouble:
    """Answers requests of *method* whose path has *part* in it with *response*, as often as *times* is set to."""

    def __init__(self, method: str, part: str, response: Response, times: int = 1) -> None:
        self._what = (method, part)
        self._response = response
        self.times = times
        """How often it still answers."""

    def __call__(self, scope: Scope) -> Response | None:
        method, part = self._what
        if self.times <= 0 or scope["method"] != method or part not in scope["path"]:
            return None
        self.times -= 1
        return self._response


class Waits:
    """Limits that are waited for in no time; `seconds` records them."""

    def __init__(self, registry_retry_seconds: float = 900) -> None:
        self.seconds: list[float] = []
        self.limits = Limits(registry_retry_seconds, self.seconds.append)


@contextlib.contextmanager
def locked_registry(folder: Path) -> Iterator[str]:
    """The real registry with a password and TLS, at `https://127.0.0.1:…`; its certificate is `folder/ca.pem`."""
    if shutil.which("docker-registry") is None:
        pytest.skip("no docker-registry; run .ci/install-registry")
    key, certificate = make_certificate(folder)
    (folder / "htpasswd").write_text(_HTPASSWD)
    server, port = _started(folder, key, certificate)
    try:
        yield f"https://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


def _started(folder: Path, key: Path, certificate: Path) -> tuple[subprocess.Popen[bytes], int]:
    """The registry on a port that was free a moment ago; on another one where somebody was faster."""
    for _ in range(5):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = int(probe.getsockname()[1])
        config = folder / "config.yml"
        config.write_text(
            "version: 0.1\nlog: {level: error}\n"
            f"storage: {{filesystem: {{rootdirectory: {folder / 'data'}}}}}\n"
            f"auth: {{htpasswd: {{realm: test, path: {folder / 'htpasswd'}}}}}\n"
            f"http: {{addr: '127.0.0.1:{port}', tls: {{certificate: {certificate}, key: {key}}}}}\n"
        )
        with (folder / "log").open("ab") as log:
            server = subprocess.Popen(["docker-registry", "serve", str(config)], stdout=log, stderr=log)
        try:
            # connections are tried again with growing waits, until the server listens
            with httpx.Client(transport=httpx.HTTPTransport(retries=8, verify=False), timeout=60) as client:
                if client.get(f"https://127.0.0.1:{port}/v2/").status_code == 401:
                    return server, port
        except httpx.HTTPError:
            pass
        server.terminate()
        server.wait()
    raise AssertionError((folder / "log").read_text(errors="replace")[-2_000:])
