"""Dashboards have names, and a user may add some."""

from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.sources.dashboards.sites import (
    OWN_SITES,
    Dashboard,
    add_dashboard,
    dashboard_named,
    dashboards_by_name,
    folder_of,
    name_for,
)


def test_five_sites_come_along(tmp_path: Path) -> None:
    boards = dashboards_by_name(tmp_path)
    assert list(boards) == ["astropy", "numpy", "pandas", "scikit-learn", "scipy"]
    assert all(board.site.startswith("https://") and board.repository for board in boards.values())


def test_what_is_added_is_kept_and_replaces_what_had_its_name(tmp_path: Path) -> None:
    sunpy = Dashboard(name="sunpy", site="https://example.org/sunpy/", repository="sunpy/sunpy", results="/raw")
    add_dashboard(tmp_path, sunpy)
    add_dashboard(tmp_path, Dashboard(name="numpy", site='file:///clone of "it"'))
    boards = dashboards_by_name(tmp_path)
    assert len(boards) == 6
    assert boards["sunpy"] == sunpy == dashboard_named(tmp_path, "sunpy")
    assert boards["numpy"].site == 'file:///clone of "it"'
    assert boards["numpy"].results == str(tmp_path / "results" / "numpy")


@pytest.mark.parametrize(
    ("name", "address"),
    [
        ("Sun Py", "https://example.org"),
        ("", "https://example.org"),
        ("sunpy", "example.org"),
        ("sunpy", "https://"),
        ("sunpy", ""),
    ],
)
def test_what_is_no_name_or_no_address_is_refused(name: str, address: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError):
        add_dashboard(tmp_path, Dashboard(name=name, site=address))
    assert not (tmp_path / OWN_SITES).exists()


@pytest.mark.parametrize("content", [b"sunpy =", b"sunpy = 1", b"[sunpy]\nsite = 1", b"[sunpy]\nsight = ''", b"\xff"])
def test_a_list_that_cannot_be_read_is_named(content: bytes, tmp_path: Path) -> None:
    (tmp_path / OWN_SITES).write_bytes(content)
    with pytest.raises(ConfigurationError, match=r"dashboards\.toml"):
        dashboards_by_name(tmp_path)


def test_an_unknown_dashboard_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="there are astropy, numpy"):
        dashboard_named(tmp_path, "nowhere")


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://pv.github.io/numpy-bench/", "numpy-bench"),
        ("https://asv.example.org", "asv"),
        ("file:///clones/My%20Site", "my-site"),
        ("path/to/results/", "results"),
    ],
)
def test_a_dashboard_without_a_name_is_called_like_its_address(address: str, name: str) -> None:
    assert name_for(address) == name


def test_folders_are_told_from_what_is_to_be_fetched() -> None:
    assert folder_of("https://example.org/x") is None
    assert folder_of("file:///a%20b") == Path("/a b")
    assert folder_of("some/where") == Path("some/where")
