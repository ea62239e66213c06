"""The HTTP side of the sandbox Hub: the calls of the real `huggingface_hub` client to create, commit, tag and download.

Only datasets and static Spaces, one branch, no Xet. Files matching `*.parquet` are kept as LFS, as the Hub does.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from sandbox.calls import CallCounter
from sandbox.content import ContentStore, WrongContentError

from .answers import commit_facts, file_facts, refs_facts, refusal, repository_facts, tree
from .repository import (
    BRANCH,
    Repository,
    RevisionNotFoundError,
    StaleParentError,
    StoredFile,
    TagExistsError,
    lfs_file,
)

USER = "sandbox"
WHOAMI = "/api/whoami-v2"
LFS_LIMIT = 10 * 1024 * 1024
"""Size in bytes above which files are stored as LFS, whatever their name."""

SPACES = "spaces"
KINDS = {"dataset": "datasets", "space": SPACES}
"""Types of a repository, and the corresponding part of its address."""

_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,95}$")
_SHA256 = re.compile(r"^[0-9a-f]{64}$")
Handler = Callable[[Request], Awaitable[Response]]


def app(folder: Path, *, tokens: frozenset[str] = frozenset(), readers: frozenset[str] = frozenset()) -> Starlette:
    """A Hub that keeps its datasets and Spaces in *folder*.

    With *tokens*, any other token is answered with 401; one of *readers* may write nothing, and is answered with 403.
    """
    hub, calls = _Hub(folder, tokens, readers), CallCounter()
    repo, address = "/api/{kind}/{owner}/{name}", "/{kind}/{owner}/{name}"
    return Starlette(
        routes=[
            calls.route(),
            Route(WHOAMI, hub.guarded(hub.whoami)),
            Route("/api/validate-yaml", hub.guarded(hub.validate_yaml), methods=["POST"]),
            Route("/api/repos/create", hub.guarded(hub.create), methods=["POST"]),
            Route(f"{repo}/auth-check/write", hub.guarded(hub.may_write)),
            Route(f"{repo}/refs", hub.guarded(hub.refs)),
            Route(f"{repo}/revision/{{revision}}", hub.guarded(hub.info)),
            Route(f"{repo}/tree/{{revision}}", hub.guarded(hub.tree)),
            Route(f"{repo}/tree/{{revision}}/{{path:path}}", hub.guarded(hub.tree)),
            Route(f"{repo}/paths-info/{{revision}}", hub.guarded(hub.paths_info), methods=["POST"]),
            Route(f"{repo}/commits/{{revision}}", hub.guarded(hub.commits)),
            Route(f"{repo}/preupload/{{revision}}", hub.guarded(hub.preupload), methods=["POST"]),
            Route(f"{repo}/commit/{{revision}}", hub.guarded(hub.commit), methods=["POST"]),
            Route(f"{repo}/tag/{{revision}}", hub.guarded(hub.tag), methods=["POST"]),
            Route(repo, hub.guarded(hub.info)),
            Route(f"{address}.git/info/lfs/objects/batch", hub.guarded(hub.lfs_batch), methods=["POST"]),
            Route(f"{address}/resolve/{{revision}}/{{path:path}}", hub.guarded(hub.file)),
            # the address itself is the permission, as with the Hub's signed storage addresses
            Route("/_lfs/{sha256}", hub.lfs_put, methods=["PUT"]),
        ],
        middleware=[Middleware(calls.middleware)],
    )


class _Hub:
    def __init__(self, folder: Path, tokens: frozenset[str], readers: frozenset[str]) -> None:
        self._folder = folder
        self._contents = ContentStore(folder / "contents")
        self._tokens = tokens
        self._readers = readers
        self._writing = asyncio.Lock()

    def guarded(self, handler: Handler) -> Handler:
        """*handler* behind the token, with the repository's errors as answers."""

        async def guarded(request: Request) -> Response:
            if not self._may(request):
                return refusal(401, "", "Invalid credentials in Authorization header")
            if "owner" in request.path_params and not self._is_there(request):
                return refusal(404, "RepoNotFound", "Repository not found")
            if self._reads_only(request) and handler in (self.create, self.commit, self.tag, self.may_write):
                return refusal(403, "", "you may not write to this repository")
            try:
                return await handler(request)
            except RevisionNotFoundError as error:
                return refusal(404, "RevisionNotFound", f"Invalid rev id: {error}")
            except (KeyError, TypeError, ValueError) as error:
                return refusal(400, "", f"the request is malformed: {error!r}")

        return guarded

    def _may(self, request: Request) -> bool:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        if token:
            return scheme == "Bearer" and (not self._tokens or token in self._tokens)
        reads = request.method in ("GET", "HEAD") and request.url.path != WHOAMI
        return reads and not self._tokens

    def _is_there(self, request: Request) -> bool:
        kind, *names = self._named(request)
        is_name = kind in KINDS.values() and all(_NAME.match(name) for name in names)
        return is_name and self._repository(request).exists

    def _repository(self, request: Request) -> Repository:
        return self._at(*self._named(request))

    def _named(self, request: Request) -> tuple[str, str, str]:
        asked = request.path_params
        return asked["kind"], asked["owner"], asked["name"]

    def _at(self, kind: str, owner: str, name: str) -> Repository:
        return Repository(self._folder / kind / owner / name, self._contents)

    def _reads_only(self, request: Request) -> bool:
        return request.headers.get("authorization", "").removeprefix("Bearer ") in self._readers

    async def may_write(self, request: Request) -> Response:  # noqa: ARG002 - the route's signature
        return JSONResponse({})

    async def whoami(self, request: Request) -> Response:
        role = "read" if self._reads_only(request) else "write"
        return JSONResponse(
            {
                "type": "user",
                "id": USER,
                "name": USER,
                "fullname": USER,
                "orgs": [],
                "auth": {"type": "access_token", "accessToken": {"displayName": USER, "role": role}},
            }
        )

    async def validate_yaml(self, request: Request) -> Response:
        content = str((await request.json())["content"])
        head = re.match(r"\A---\r?\n(.*?)\r?\n---\r?\n", content, re.DOTALL)
        if head is None:
            return JSONResponse({"errors": [], "warnings": [{"message": "empty or missing yaml metadata"}]})
        import yaml

        try:
            found = yaml.safe_load(head[1])
        except yaml.YAMLError as error:
            return JSONResponse({"errors": [{"message": str(error)}], "warnings": []}, status_code=400)
        if not isinstance(found, dict):
            return JSONResponse({"errors": [{"message": "metadata is no mapping"}], "warnings": []}, status_code=400)
        return JSONResponse({"errors": [], "warnings": []})

    async def create(self, request: Request) -> Response:
        asked = await request.json()
        owner, name = asked.get("organization") or USER, asked["name"]
        kind = KINDS.get(asked.get("type"))
        if kind is None or (kind == SPACES and asked.get("sdk") != "static"):
            return refusal(400, "", "the sandbox keeps datasets and static Spaces only")
        if not (_NAME.match(owner) and _NAME.match(name)):
            return refusal(400, "", "not a name for a repository")
        url = f"{str(request.base_url).rstrip('/')}/{kind}/{owner}/{name}"
        async with self._writing:
            repository = self._at(kind, owner, name)
            if repository.exists:
                answer = {"error": "You already created this repo", "url": url}
                return JSONResponse(answer, status_code=409)
            repository.create(USER)
        return JSONResponse({"url": url, "id": f"{owner}/{name}", "name": f"{owner}/{name}"})

    async def info(self, request: Request) -> Response:
        sha, commit = self._repository(request).resolve(request.path_params.get("revision", BRANCH))
        repo_id = f"{request.path_params['owner']}/{request.path_params['name']}"
        return JSONResponse(repository_facts(repo_id, sha, commit))

    async def refs(self, request: Request) -> Response:
        return JSONResponse(refs_facts(self._repository(request).refs()))

    async def tree(self, request: Request) -> Response:
        _, commit = self._repository(request).resolve(request.path_params["revision"])
        is_recursive = request.query_params.get("recursive", "").lower() in ("1", "true")
        found = tree(commit, request.path_params.get("path", ""), recursive=is_recursive)
        if not found and request.path_params.get("path"):
            return refusal(404, "EntryNotFound", "Entry not found")
        return JSONResponse(found)

    async def paths_info(self, request: Request) -> Response:
        _, commit = self._repository(request).resolve(request.path_params["revision"])
        asked = parse_qs((await request.body()).decode())["paths"]
        return JSONResponse([file_facts(path, commit.files[path]) for path in asked if path in commit.files])

    async def commits(self, request: Request) -> Response:
        history = self._repository(request).history(request.path_params["revision"])
        return JSONResponse([commit_facts(sha, commit) for sha, commit in history])

    async def preupload(self, request: Request) -> Response:
        _, commit = self._repository(request).resolve(request.path_params["revision"])
        answers = []
        for asked in (await request.json())["files"]:
            path, present = asked["path"], commit.files.get(asked["path"])
            is_large = path.endswith(".parquet") or asked["size"] > LFS_LIMIT
            mode = "lfs" if is_large else "regular"
            oid = None if present is None else present.sha256 if present.is_lfs else present.blob_id
            answers.append({"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid})
        return JSONResponse({"files": answers})

    async def lfs_batch(self, request: Request) -> Response:
        base, objects = str(request.base_url).rstrip("/"), []
        for asked in (await request.json())["objects"]:
            answer: dict[str, Any] = {"oid": asked["oid"], "size": asked["size"], "authenticated": True}
            if not self._contents.has(asked["oid"]):
                answer["actions"] = {"upload": {"href": f"{base}/_lfs/{asked['oid']}"}}
            objects.append(answer)
        return JSONResponse({"transfer": "basic", "objects": objects})

    async def lfs_put(self, request: Request) -> Response:
        sha256 = request.path_params["sha256"]
        if not _SHA256.match(sha256):
            return refusal(400, "", "not a SHA-256")
        try:
            await self._contents.receive(request.stream(), sha256)
        except WrongContentError as error:
            return refusal(400, "", str(error))
        except OSError as error:
            return refusal(507, "", f"the sandbox cannot store this: {error.strerror}")
        return Response(status_code=200)

    async def commit(self, request: Request) -> Response:
        if request.path_params["revision"] not in (BRANCH, f"refs/heads/{BRANCH}"):
            return refusal(403, "", f"the sandbox commits to {BRANCH} only")
        lines = [json.loads(line) for line in (await request.body()).splitlines() if line.strip()]
        header = next(line["value"] for line in lines if line["key"] == "header")
        repository = self._repository(request)
        async with self._writing:
            changes = dict(self._change(repository, line) for line in lines if line["key"] != "header")
            try:
                sha = repository.commit(
                    title=header["summary"],
                    message=header.get("description", ""),
                    author=USER,
                    changes=changes,
                    expected_parent=header.get("parentCommit"),
                )
            except StaleParentError as error:
                return refusal(412, "", f"A commit has happened since. Please refresh and try again: {error}")
        url = f"{str(request.base_url).rstrip('/')}/{'/'.join(self._named(request))}/commit/{sha}"
        return JSONResponse({"success": True, "commitOid": sha, "commitUrl": url, "hookOutput": ""})

    def _change(self, repository: Repository, line: dict[str, Any]) -> tuple[str, StoredFile | None]:
        value = line["value"]
        path = str(value["path"]).rstrip("/")
        if not path or any(part in ("", ".", "..") for part in path.split("/")):
            raise ValueError(f"{path!r} is no path")
        match line["key"]:
            case "file":
                return path, repository.regular_file(base64.b64decode(value["content"]))
            case "lfsFile":
                if not (_SHA256.match(value["oid"]) and self._contents.has(value["oid"])):
                    raise ValueError(f"{path} was not uploaded")
                return path, lfs_file(value["oid"], self._contents.path(value["oid"]).stat().st_size)
            case "deletedFile" | "deletedFolder":
                return path, None
        raise ValueError(f"unknown operation {line['key']}")

    async def tag(self, request: Request) -> Response:
        name = str((await request.json())["tag"])
        async with self._writing:
            try:
                self._repository(request).tag(name, request.path_params["revision"])
            except TagExistsError:
                return refusal(409, "", f"Tag reference exists already: {name}")
        return Response(status_code=200)

    async def file(self, request: Request) -> Response:
        sha, commit = self._repository(request).resolve(request.path_params["revision"])
        found = commit.files.get(request.path_params["path"])
        if found is None:
            answer = refusal(404, "EntryNotFound", "Entry not found")
            answer.headers["X-Repo-Commit"] = sha
            return answer
        etag = f'"{found.sha256 if found.is_lfs else found.blob_id}"'
        headers = {"ETag": etag, "X-Repo-Commit": sha, "Accept-Ranges": "bytes"}
        if found.is_lfs:
            headers |= {"X-Linked-Etag": etag, "X-Linked-Size": str(found.size)}
        return FileResponse(self._contents.path(found.sha256), media_type="application/octet-stream", headers=headers)
