"""Credentials among the variables by which a package index is reached."""

from __future__ import annotations

import pytest

from formulacode_dagster.building.engines.credentials import has_credentials


@pytest.mark.parametrize(
    ("name", "value", "are_there"),
    [
        ("UV_DEFAULT_INDEX", "https://user:hunter2@index/simple", True),
        ("UV_INDEX", "https://index/simple ours=https://token@index/simple", True),
        ("https_proxy", "http://user:hunter2@proxy:3128", True),
        ("HTTPS_PROXY", "user:hunter2@proxy:3128", True),
        ("UV_INDEX_OURS_PASSWORD", "hunter2", True),
        ("UV_INDEX_OURS_USERNAME", "token", True),
        ("UV_INDEX_OURS_PASSWORD", "", False),
        ("UV_DEFAULT_INDEX", "https://index/simple", False),
        ("UV_FIND_LINKS", "/wheels@home", False),
        ("UV_FIND_LINKS", "https://index/a@b", False),
        ("NO_PROXY", "localhost,.internal", False),
    ],
)
def test_a_password_is_recognized_by_its_name_or_in_an_address(name: str, value: str, are_there: bool) -> None:
    assert has_credentials({name: value}) is are_there
