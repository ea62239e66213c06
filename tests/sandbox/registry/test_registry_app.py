from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from sandbox.registry import app
from sandbox.server import serving

TYPE = "application/vnd.docker.distribution.manifest.v2+json"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "registry"


@pytest.fixture
def client(folder: Path) -> Iterator[httpx.Client]:
    with serving(app(folder)) as url, httpx.Client(base_url=url) as client:
        yield client


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _push_blob(client: httpx.Client, content: bytes, name: str = "acme/tasks") -> str:
    where = client.post(f"/v2/{name}/blobs/uploads/").headers["Location"]
    answer = client.put(where, params={"digest": _digest(content)}, content=content)
    assert answer.status_code == 201
    return _digest(content)


def _manifest(*digests: str) -> bytes:
    config, *layers = ({"digest": digest, "size": 1, "mediaType": "x"} for digest in digests)
    return json.dumps({"schemaVersion": 2, "mediaType": TYPE, "config": config, "layers": layers}).encode()


def _put_manifest(client: httpx.Client, reference: str, content: bytes) -> httpx.Response:
    return client.put(f"/v2/acme/tasks/manifests/{reference}", content=content, headers={"Content-Type": TYPE})


def test_an_image_is_pushed_and_pulled_by_tag_and_by_digest(client: httpx.Client) -> None:
    config, layer = _push_blob(client, b"config"), _push_blob(client, b"layer" * 99)
    content = _manifest(config, layer)
    answer = _put_manifest(client, "v1", content)
    assert answer.status_code == 201
    assert answer.headers["Docker-Content-Digest"] == _digest(content)
    for reference in ("v1", _digest(content)):
        found = client.get(f"/v2/acme/tasks/manifests/{reference}")
        assert (found.content, found.headers["Content-Type"]) == (content, TYPE)
        assert found.headers["Docker-Content-Digest"] == _digest(content)
        asked = client.head(f"/v2/acme/tasks/manifests/{reference}")
        assert asked.headers["Content-Length"] == str(len(content))
    assert client.get(f"/v2/acme/tasks/blobs/{layer}").content == b"layer" * 99


def test_a_blob_may_come_in_pieces(client: httpx.Client) -> None:
    where = client.post("/v2/acme/tasks/blobs/uploads/").headers["Location"]
    first = client.patch(where, content=b"first ", headers={"Content-Range": "0-5"})
    assert (first.status_code, first.headers["Range"]) == (202, "0-5")
    gap = client.patch(where, content=b"x", headers={"Content-Range": "9-9"})
    assert gap.status_code == 416
    digest = _digest(b"first second")
    assert client.put(where, params={"digest": digest}, content=b"second").status_code == 201
    assert client.get(f"/v2/acme/tasks/blobs/{digest}").content == b"first second"


def test_a_blob_that_is_not_what_it_says_is_not_kept(client: httpx.Client, folder: Path) -> None:
    where = client.post("/v2/acme/tasks/blobs/uploads/").headers["Location"]
    answer = client.put(where, params={"digest": _digest(b"this")}, content=b"that")
    assert answer.json()["errors"][0]["code"] == "DIGEST_INVALID"
    assert client.head(f"/v2/acme/tasks/blobs/{_digest(b'this')}").status_code == 404
    assert [path for path in folder.rglob("*") if path.is_file()] == []


def test_a_manifest_without_its_blobs_is_refused(client: httpx.Client) -> None:
    config = _push_blob(client, b"config")
    answer = _put_manifest(client, "v1", _manifest(config, _digest(b"never pushed")))
    assert answer.json()["errors"][0]["code"] == "BLOB_UNKNOWN"
    assert client.get("/v2/acme/tasks/manifests/v1").status_code == 404


def test_a_manifest_under_a_wrong_digest_is_refused(client: httpx.Client) -> None:
    content = _manifest(_push_blob(client, b"config"))
    assert _put_manifest(client, _digest(b"other"), content).json()["errors"][0]["code"] == "DIGEST_INVALID"


@pytest.mark.parametrize("content", [b"{", b"[]", b"{}", b'{"config": 1, "layers": []}'])
def test_a_malformed_manifest_is_refused(client: httpx.Client, content: bytes) -> None:
    assert _put_manifest(client, "v1", content).json()["errors"][0]["code"] == "MANIFEST_INVALID"


def test_a_known_blob_is_mounted_and_an_unknown_one_declined(client: httpx.Client) -> None:
    digest = _push_blob(client, b"shared")
    known = client.post("/v2/acme/other/blobs/uploads/", params={"mount": digest, "from": "acme/tasks"})
    assert known.status_code == 201
    unknown = client.post("/v2/acme/other/blobs/uploads/", params={"mount": _digest(b"?"), "from": "acme/tasks"})
    assert unknown.status_code == 202


def test_an_abandoned_upload_is_gone(client: httpx.Client) -> None:
    where = client.post("/v2/acme/tasks/blobs/uploads/").headers["Location"]
    assert client.delete(where).status_code == 204
    assert client.patch(where, content=b"x").json()["errors"][0]["code"] == "BLOB_UPLOAD_UNKNOWN"


def test_a_name_that_is_none_is_refused(client: httpx.Client) -> None:
    assert client.post("/v2/Acme/Tasks/blobs/uploads/").json()["errors"][0]["code"] == "NAME_INVALID"
    assert client.get("/v2/a/%2e%2e/%2e%2e/manifests/v1").status_code in (400, 404)


def test_images_outlive_the_server(client: httpx.Client, folder: Path) -> None:
    content = _manifest(_push_blob(client, b"config"))
    _put_manifest(client, "v1", content)
    with serving(app(folder)) as url:
        assert httpx.get(f"{url}/v2/acme/tasks/manifests/v1").content == content


def test_requests_are_counted(client: httpx.Client) -> None:
    client.get("/v2/")
    client.get("/v2/")
    assert client.get("/_sandbox/calls").json() == {"total": 2, "by_method": {"GET": 2}}
