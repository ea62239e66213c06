"""Our schema and our answers, against what GitHub publishes (npm packages, no copy kept here)."""

from __future__ import annotations

import re
import shutil
from typing import Any

import pytest

from sandbox.github.context import Account
from sandbox.github.graphql.execution import SDL
from sandbox.github.rest import ENDPOINTS
from tests.sandbox.github.conftest import TOKEN


def test_the_schema_is_valid():
    from graphql import build_schema, validate_schema

    assert validate_schema(build_schema(SDL.read_text(encoding="utf-8"))) == []


@pytest.mark.network
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_every_type_field_and_argument_exists_in_githubs_schema(published_schema):
    from graphql import build_schema

    theirs = published_schema
    ours = build_schema(SDL.read_text(encoding="utf-8"))
    differences = []
    for name, mine in ours.type_map.items():
        if name.startswith("__"):
            continue
        other = theirs.type_map.get(name)
        if type(other) is not type(mine):
            differences.append(f"{name}: {other!r}")
            continue
        differences += [
            f"{name}.{value}" for value in set(getattr(mine, "values", ())) - set(getattr(other, "values", ()))
        ]
        members = {member.name for member in getattr(mine, "types", ())} - {
            member.name for member in getattr(other, "types", ())
        }
        differences += [f"{name} | {member}" for member in members]
        interfaces = {interface.name for interface in getattr(mine, "interfaces", ())}
        differences += [
            f"{name} implements {interface}"
            for interface in interfaces - {interface.name for interface in getattr(other, "interfaces", ())}
        ]
        for field, definition in getattr(mine, "fields", {}).items():
            known = other.fields.get(field)
            if known is None or str(known.type) != str(definition.type):
                differences.append(f"{name}.{field}: {definition.type}, theirs {known and known.type}")
                continue
            for argument, value in getattr(definition, "args", {}).items():
                their_value = known.args.get(argument)
                if their_value is None or (str(their_value.type), their_value.default_value) != (
                    str(value.type),
                    value.default_value,
                ):
                    differences.append(f"{name}.{field}({argument}: {value.type})")
    assert differences == []


INSTALLATION = "/installation/repositories"
PATHS = {
    "/user": ("/user", 1),
    INSTALLATION: (INSTALLATION, 2),
    "/rate_limit": ("/rate_limit", 1),
    "/repos/ada/engine": ("/repos/{owner}/{repo}", 1),
    "/repos/ada/engine/pulls/1": ("/repos/{owner}/{repo}/pulls/{pull_number}", 1),
    "/repos/ada/engine/pulls?state=all": ("/repos/{owner}/{repo}/pulls", 4),
    "/repos/ada/engine/pulls/1/files": ("/repos/{owner}/{repo}/pulls/{pull_number}/files", 2),
    "/repos/ada/engine/issues/7/timeline": ("/repos/{owner}/{repo}/issues/{issue_number}/timeline", 4),
    "/search/code?q=filename:file1.txt": ("/search/code", 1),
}


def strangers(schema: dict[str, Any], value: Any, where: str, schemas: dict[str, Any]) -> list[str]:
    """Names in *value* that *schema* does not know. Alternatives are united."""
    while "$ref" in schema:
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    if isinstance(value, list):
        return [
            stranger for item in value for stranger in strangers(schema.get("items", {}), item, f"{where}[]", schemas)
        ]
    if not isinstance(value, dict):
        return []
    known: dict[str, Any] = {}
    free = False
    pending = [schema]
    while pending:
        schema = pending.pop()
        while "$ref" in schema:
            schema = schemas[schema["$ref"].rpartition("/")[2]]
        known |= schema.get("properties", {})
        free |= bool(schema.get("additionalProperties"))
        pending += [*schema.get("allOf", ()), *schema.get("anyOf", ()), *schema.get("oneOf", ())]
    found = [] if free else [f"{where}.{name}" for name in value if name not in known]
    for name, inner in value.items():
        if name in known:
            found += strangers(known[name], inner, f"{where}.{name}", schemas)
    return found


@pytest.mark.network
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed")
def test_every_field_of_a_rest_answer_is_in_github_s_description(small, tell, caller, published_rest):
    description = published_rest
    schemas = description["components"]["schemas"]
    comment = {"author": "eve", "body": "Same here", "created_at": "2025-07-01T00:00:00Z"}
    issue = {"number": 7, "title": "Slow", "created_at": "2025-06-01T00:00:00Z", "comments": [comment]}
    tell({"ada/engine": {"issues": [issue]}})
    found = []
    for path, (template, least) in PATHS.items():
        # only tokens of an App's installation may ask for it
        tokens = {TOKEN: Account(login="app[bot]", is_installation=path == INSTALLATION)}
        answer = caller(tokens=tokens).get(path)
        assert answer.status_code == 200, path
        body = answer.json()
        assert len(body) >= least, path
        schema = description["paths"][template]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
        found += [f"{path}: {name}" for name in strangers(schema, body, "", schemas)]
    assert found == []


def test_every_endpoint_is_held_against_the_description():
    def nameless(template: str) -> str:
        return re.sub(r"\{[^}]*\}", "{}", template)

    held = {nameless(template) for template, _ in PATHS.values()} - {"/rate_limit"}
    # what a 301 leads to answers as the path by name does
    assert held == {nameless(path) for path, _, _ in ENDPOINTS if not path.startswith("/repositories/")}
