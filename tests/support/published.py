"""GitHub's published description of its API, fetched from npm; no copy is stored here."""

from __future__ import annotations

import json
import subprocess
import tarfile
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(scope="session")
def published(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], bytes]:
    """A member of a package, by names."""
    folder = tmp_path_factory.mktemp("published")

    def fetch(package: str, member: str) -> bytes:
        packed = folder / f"{package.rpartition('/')[2]}.name"
        if not packed.exists():
            command = ["npm", "pack", "--silent", package]
            done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=180)
            packed.write_text(done.stdout.split()[-1])
        with tarfile.open(folder / packed.read_text()) as archive:
            content = archive.extractfile(f"package/{member}")
            assert content is not None
            return content.read()

    return fetch


@pytest.fixture(scope="session")
def published_schema(published: Callable[[str, str], bytes]) -> Any:
    """GitHub's GraphQL schema."""
    from graphql import build_schema

    text = published("@octokit/graphql-schema", "schema.graphql").decode()
    return build_schema(text, assume_valid=True, no_location=True)


@pytest.fixture(scope="session")
def published_rest(published: Callable[[str, str], bytes]) -> dict[str, Any]:
    """GitHub's description of its REST API."""
    told: dict[str, Any] = json.loads(published("@octokit/openapi", "generated/api.github.com.json"))
    return told
