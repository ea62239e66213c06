"""Moments at which pull requests are merged, and what is read off the windows that come back."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.intake import MergedWindow
from tests.support.github import FEBRUARY


def every(seconds: float, count: int, start: datetime = FEBRUARY.start) -> Iterator[datetime]:
    """*count* moments from *start* on, *seconds* apart."""
    return (start + timedelta(seconds=int(seconds * index)) for index in range(count))


def numbers(window: Any) -> list[int]:
    """The numbers of a window that came back whole."""
    assert isinstance(window, MergedWindow), window
    assert window.count.reported == window.count.stored == len(window.pull_requests), window.count
    return [pull_request.number for pull_request in window.pull_requests]


def pages(body: dict[str, Any]) -> list[tuple[str, list[Any]]]:
    """The pages of merged pull requests in an answer, by alias."""
    aliases = [name for name in body["data"] if name.startswith("s") and name[1:].isdigit()]
    return [(alias, body["data"][alias]["nodes"]) for alias in aliases]


def failure(end: Any) -> ItemFailure:
    """*end*, which is no window."""
    assert isinstance(end, ItemFailure), end
    return end
