"""Addresses of each kind of GitHub, and what is derived from them."""

from __future__ import annotations

import pytest

from formulacode_dagster.sources.github.references import references_in
from formulacode_dagster.sources.github.transport.addresses import GitHubAddresses
from resources.settings import read_settings


@pytest.mark.parametrize(
    ("api", "graphql", "web"),
    [
        ("https://api.github.com", "https://api.github.com/graphql", "https://github.com"),
        ("https://git.corp.example/api/v3/", "https://git.corp.example/api/graphql", "https://git.corp.example"),
        (
            "https://git.corp.example:8443/api/v3",
            "https://git.corp.example:8443/api/graphql",
            "https://git.corp.example:8443",
        ),
        ("https://api.octo.ghe.com", "https://api.octo.ghe.com/graphql", "https://octo.ghe.com"),
        ("http://127.0.0.1:4567", "http://127.0.0.1:4567/graphql", "https://github.com"),
    ],
)
def test_addresses_follow_from_that_of_the_api(monkeypatch, api, graphql, web):
    addresses = GitHubAddresses.of(api)
    assert (addresses.rest, addresses.graphql, addresses.web) == (api.rstrip("/"), graphql, web)
    monkeypatch.setenv("GITHUB_API_URL", api)
    assert read_settings().clone_url == web
    monkeypatch.setenv("GITHUB_CLONE_URL", "https://elsewhere.example")
    assert (read_settings().clone_url, read_settings().github_web) == ("https://elsewhere.example", web)


@pytest.mark.parametrize(
    ("api", "name"),
    [
        ("https://api.github.com", "github.com"),
        ("https://API.github.com:443/", "github.com"),
        ("https://git.corp.example:8443/api/v3", "git.corp.example"),
        ("https://api.octo.ghe.com", "octo.ghe.com"),
        ("http://sandbox:8100", "sandbox"),
        ("http://127.0.0.1:4567", "localhost"),
        ("http://[::1]:4567", "localhost"),
        ("http://0.0.0.0:4567", "localhost"),
        ("http://[::]:4567", "localhost"),
    ],
)
def test_a_github_has_one_name_on_every_port(api: str, name: str) -> None:
    assert GitHubAddresses.of(api).name == name


def test_pages_of_another_host_are_references_there_only():
    text = "See https://git.corp.example/acme/wheels/issues/12 and https://github.com/acme/wheels/issues/13."
    host = GitHubAddresses.of("https://git.corp.example/api/v3").host
    assert [reference.number for reference in references_in(text, "acme/wheels", host=host)] == [12]
    assert [reference.number for reference in references_in(text, "acme/wheels")] == [13]
