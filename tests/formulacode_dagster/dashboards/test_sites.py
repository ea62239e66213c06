"""Sites have names, and a user may add some."""

from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.dashboards.sites import OWN_SITES, add_site, sites_by_name
from formulacode_dagster.models.errors import ConfigurationError


def test_five_sites_come_along(tmp_path: Path) -> None:
    sites = sites_by_name(tmp_path)
    assert list(sites) == ["astropy", "numpy", "pandas", "scikit-learn", "scipy"]
    assert all(address.startswith("https://") for address in sites.values())


def test_what_is_added_is_kept_and_replaces_what_had_its_name(tmp_path: Path) -> None:
    add_site(tmp_path, "sunpy", "https://example.org/sunpy/")
    add_site(tmp_path, "numpy", 'file:///clone of "it"')
    sites = sites_by_name(tmp_path)
    assert (sites["sunpy"], sites["numpy"], len(sites)) == ("https://example.org/sunpy/", 'file:///clone of "it"', 6)


@pytest.mark.parametrize(
    ("name", "address"),
    [("Sun Py", "https://example.org"), ("", "https://example.org"), ("sunpy", "example.org"), ("sunpy", "https://")],
)
def test_what_is_no_name_or_no_address_is_refused(name: str, address: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        add_site(tmp_path, name, address)
    assert not (tmp_path / OWN_SITES).exists()


@pytest.mark.parametrize("content", [b"sunpy =", b"sunpy = 1", b"\xff"])
def test_a_list_that_cannot_be_read_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / OWN_SITES).write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"dashboards\.toml"):
        sites_by_name(tmp_path)
