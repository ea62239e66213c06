"""The HTTP side of the sandbox registry: a Docker daemon's requests to push, and to pull by tag and digest.

A subset of the OCI distribution specification. Content is streamed to and from the folder; a cross-repository mount is
declined when the blob is not here, as the specification allows.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterable, Awaitable, Callable
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from sandbox.calls import CallCounter
from sandbox.content import WrongContentError

from .store import REPOSITORY, RefusedError, RegistryStore, hex_of

MAX_MANIFEST_BYTES = 4 * 1024 * 1024
INDEX = "application/vnd.oci.image.index.v1+json"
VERSION_HEADER = {"Docker-Distribution-Api-Version": "registry/2.0"}
_CONTENT_RANGE = re.compile(r"^(?:bytes )?(\d+)-(\d+)")
Handler = Callable[[Request], Awaitable[Response]]


def app(folder: Path) -> Starlette:
    """A registry that keeps its images in *folder*, open to everybody on this machine."""
    logging.getLogger("uvicorn.error").addFilter(_is_no_tls_greeting)
    registry, calls = _Registry(RegistryStore(folder)), CallCounter()
    blob = "/v2/{name:path}/blobs/{digest:str}"
    upload = "/v2/{name:path}/blobs/uploads/{upload:str}"
    manifest = "/v2/{name:path}/manifests/{reference:str}"
    return Starlette(
        routes=[
            calls.route(),
            Route("/v2/", registry.version),
            Route("/v2/{name:path}/blobs/uploads/", _guarded(registry.begin), methods=["POST"]),
            Route(upload, _guarded(registry.append), methods=["PATCH"]),
            Route(upload, _guarded(registry.finish), methods=["PUT"]),
            Route(upload, _guarded(registry.abandon), methods=["DELETE"]),
            Route(blob, _guarded(registry.blob), methods=["GET", "HEAD"]),
            Route(manifest, _guarded(registry.manifest), methods=["GET", "HEAD"]),
            Route(manifest, _guarded(registry.put_manifest), methods=["PUT"]),
            Route("/v2/{name:path}/referrers/{digest:str}", _guarded(registry.referrers), methods=["GET"]),
        ],
        middleware=[Middleware(calls.middleware)],
    )


def _is_no_tls_greeting(record: logging.LogRecord) -> bool:
    # a Docker daemon tries TLS first, at every step, and each try would be a warning
    return not record.getMessage().startswith("Invalid HTTP request received")


def _guarded(handler: Handler) -> Handler:
    async def guarded(request: Request) -> Response:
        try:
            if not REPOSITORY.match(request.path_params["name"]):
                raise RefusedError(400, "NAME_INVALID", "not the name of a repository")
            return await handler(request)
        except RefusedError as error:
            return _error(error.status, error.code, str(error))
        except WrongContentError as error:
            return _error(400, "DIGEST_INVALID", str(error))
        except OSError as error:
            return _error(507, "UNKNOWN", f"the sandbox cannot store this: {error.strerror}")

    return guarded


def _error(status: int, code: str, message: str) -> JSONResponse:
    detail = {"errors": [{"code": code, "message": message, "detail": None}]}
    return JSONResponse(detail, status_code=status, headers=VERSION_HEADER)


class _Registry:
    def __init__(self, store: RegistryStore) -> None:
        self._store = store

    async def version(self, request: Request) -> Response:  # noqa: ARG002 - the route's signature
        return JSONResponse({}, headers=VERSION_HEADER)

    async def begin(self, request: Request) -> Response:
        name, query = request.path_params["name"], request.query_params
        mounted = query.get("mount")
        if mounted and self._store.blobs.has(hex_of(mounted)):
            return self._created(name, mounted)
        upload = self._store.begin_upload()
        if digest := query.get("digest"):
            return await self._complete(request, upload, digest)
        return self._accepted(name, upload)

    async def append(self, request: Request) -> Response:
        upload = request.path_params["upload"]
        path = self._store.upload(upload)
        size = (await asyncio.to_thread(path.stat)).st_size
        given = _CONTENT_RANGE.match(request.headers.get("content-range", ""))
        if given and int(given[1]) != size:
            raise RefusedError(416, "BLOB_UPLOAD_INVALID", f"the upload stands at {size} bytes")
        await _append(path, request.stream())
        return self._accepted(request.path_params["name"], upload)

    async def finish(self, request: Request) -> Response:
        digest = request.query_params.get("digest", "")
        return await self._complete(request, request.path_params["upload"], digest)

    async def abandon(self, request: Request) -> Response:
        path = self._store.upload(request.path_params["upload"])
        await asyncio.to_thread(path.unlink)
        return Response(status_code=204)

    async def blob(self, request: Request) -> Response:
        digest = request.path_params["digest"]
        headers = {"Docker-Content-Digest": digest, **VERSION_HEADER}
        return FileResponse(self._store.blob(digest), media_type="application/octet-stream", headers=headers)

    async def manifest(self, request: Request) -> Response:
        found = self._store.manifest(request.path_params["name"], request.path_params["reference"])
        headers = {"Docker-Content-Digest": found.digest, **VERSION_HEADER}
        return FileResponse(self._store.blob(found.digest), media_type=found.media_type, headers=headers)

    async def put_manifest(self, request: Request) -> Response:
        name, content = request.path_params["name"], bytearray()
        async for chunk in request.stream():
            content += chunk
            if len(content) > MAX_MANIFEST_BYTES:
                raise RefusedError(413, "MANIFEST_INVALID", f"a manifest has at most {MAX_MANIFEST_BYTES} bytes")
        media_type = request.headers.get("content-type", "application/vnd.oci.image.manifest.v1+json")
        stored = self._store.put_manifest(name, request.path_params["reference"], bytes(content), media_type)
        headers = {"Location": f"/v2/{name}/manifests/{stored.digest}", "Docker-Content-Digest": stored.digest}
        if subject := self._store.subject_of(bytes(content)):
            headers["OCI-Subject"] = subject
        return Response(status_code=201, headers={**headers, **VERSION_HEADER})

    async def referrers(self, request: Request) -> Response:
        entries = self._store.referrers(request.path_params["name"], request.path_params["digest"])
        index = {"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}
        return JSONResponse(index, media_type=INDEX, headers=VERSION_HEADER)

    async def _complete(self, request: Request, upload: str, digest: str) -> Response:
        path, sha256 = self._store.upload(upload), hex_of(digest)
        await _append(path, request.stream())
        try:
            await asyncio.to_thread(self._store.blobs.adopt, path, sha256)
        except WrongContentError:
            await asyncio.to_thread(path.unlink, missing_ok=True)
            raise
        return self._created(request.path_params["name"], digest)

    def _accepted(self, name: str, upload: str) -> Response:
        size = self._store.upload(upload).stat().st_size
        headers = {
            "Location": f"/v2/{name}/blobs/uploads/{upload}",
            "Docker-Upload-UUID": upload,
            "Range": f"0-{max(size - 1, 0)}",
            **VERSION_HEADER,
        }
        return Response(status_code=202, headers=headers)

    @staticmethod
    def _created(name: str, digest: str) -> Response:
        headers = {"Location": f"/v2/{name}/blobs/{digest}", "Docker-Content-Digest": digest, **VERSION_HEADER}
        return Response(status_code=201, headers=headers)


async def _append(path: Path, chunks: AsyncIterable[bytes]) -> None:
    file = await asyncio.to_thread(path.open, "ab")
    try:
        async for chunk in chunks:
            await asyncio.to_thread(file.write, chunk)
    finally:
        await asyncio.to_thread(file.close)
