"""What we send, against what GitHub publishes about itself (npm packages, no copy kept here)."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from formulacode_dagster.github.client import JSON
from formulacode_dagster.github.queries import ALL_QUERIES, CODE_SEARCH_PATH, RATE_LIMIT_PATH

pytestmark = [pytest.mark.network, pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")]


def published(package: str, member: str, folder: Path) -> bytes:
    done = subprocess.run(
        ["npm", "pack", "--silent", package], cwd=folder, check=True, capture_output=True, text=True, timeout=180
    )
    with tarfile.open(folder / done.stdout.split()[-1]) as archive:
        content = archive.extractfile(f"package/{member}")
        assert content is not None
        return content.read()


@pytest.fixture(scope="module")
def schema(tmp_path_factory):
    from graphql import build_schema

    text = published("@octokit/graphql-schema", "schema.graphql", tmp_path_factory.mktemp("schema")).decode()
    return build_schema(text, assume_valid=True)


@pytest.mark.parametrize("name", ALL_QUERIES)
def test_every_query_is_valid_against_github_s_schema(schema, name):
    from graphql import OperationDefinitionNode, parse, validate

    document = parse(ALL_QUERIES[name])
    assert validate(schema, document) == []
    names = [
        node.name.value
        for node in document.definitions
        if isinstance(node, OperationDefinitionNode) and node.name is not None
    ]
    assert names == [name]


@pytest.mark.slow
def test_every_rest_path_its_parameters_and_answer_are_as_github_describes_them(tmp_path):
    description = json.loads(published("@octokit/openapi", "generated/api.github.com.deref.json", tmp_path))
    operation = description["paths"][CODE_SEARCH_PATH]["get"]
    assert {"q", "per_page", "page"} <= {parameter["name"] for parameter in operation["parameters"]}
    answer = operation["responses"]["200"]["content"]
    body = (answer.get(JSON) or answer["application/json"])["schema"]
    assert {"total_count", "incomplete_results", "items"} <= set(body["required"])
    item = body["properties"]["items"]["items"]
    assert {"name", "path", "repository"} <= set(item["required"])
    assert {"node_id", "full_name"} <= set(item["properties"]["repository"]["properties"])
    assert RATE_LIMIT_PATH in description["paths"]
