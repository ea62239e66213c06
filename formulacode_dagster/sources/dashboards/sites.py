"""Dashboards by name: those that come along, and those that a user adds."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pydantic import ValidationError

from formulacode_dagster.models.base import Frozen, first_fault
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.files.atomic import disk_errors, write_atomically

OWN_SITES = "dashboards.toml"
"""The file under FC_HOME with the dashboards that a user added, called like the one that comes along."""
RESULTS = "results"
"""The folder under FC_HOME with a folder of raw results for each dashboard that names no other."""
_SHIPPED = Path(__file__).with_name(OWN_SITES)
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_SCHEMES = ("http", "https", "file")


class Dashboard(Frozen):
    """Sources of a repository's series: a published site, raw results, or both."""

    name: str
    site: str = ""
    results: str = ""
    repository: str = ""


def dashboards_by_name(home: Path) -> dict[str, Dashboard]:
    """Return the built-in dashboards and those added under *home*, which override built-in ones of the same name.

    Without `results`, the folder `results/<name>` under *home* is used. Raises ConfigurationError if the list is
    malformed.
    """
    listed = sorted((_read(_SHIPPED) | _own(home)).items())
    return {
        name: board if board.results else board.model_copy(update={"results": str(home / RESULTS / name)})
        for name, board in listed
    }


def dashboard_named(home: Path, name: str) -> Dashboard:
    """Return the dashboard *name*; raises ConfigurationError if there is none."""
    boards = dashboards_by_name(home)
    if name not in boards:
        raise ConfigurationError(
            f"no dashboard is called {name}",
            why=f"there are {', '.join(boards)}",
            remedy=f"Add it: fc-data dashboards add URL --name {name}",
        )
    return boards[name]


def add_dashboard(home: Path, dashboard: Dashboard) -> None:
    """Keep *dashboard* under *home*.

    Raises ConfigurationError when it has no such name or no address, OutsideSystemError when the disk is full.
    """
    if not _NAME.fullmatch(dashboard.name):
        raise ConfigurationError(
            f"{dashboard.name} cannot be the name of a dashboard", remedy="Use lower-case letters, digits, `-` and `_`"
        )
    if not (dashboard.site or dashboard.results):
        raise ConfigurationError(
            f"{dashboard.name} has neither a site nor results", remedy="Give the address of a site, or --results"
        )
    if dashboard.site:
        parts = urlsplit(dashboard.site)
        if parts.scheme not in _SCHEMES or not (parts.netloc or parts.scheme == "file"):
            raise ConfigurationError(
                f"{dashboard.site} is not the URL of a site", remedy="It begins with https://, http:// or file://"
            )
    boards = dict(sorted((_own(home) | {dashboard.name: dashboard}).items()))
    with disk_errors(str(home / OWN_SITES)):
        write_atomically(home / OWN_SITES, "\n".join(map(_toml, boards.values())).encode())


def name_for(address: str) -> str:
    """Return the default name of the dashboard at *address*: the last part of its path, else its host."""
    parts = urlsplit(address)
    last = [part for part in unquote(parts.path).split("/") if part] or [parts.netloc.partition(".")[0]]
    return re.sub(r"[^a-z0-9_-]+", "-", last[-1].lower()).strip("-_")


def folder_of(address: str) -> Path | None:
    """Return the folder of *address*, given as path or `file://` URL; None if it must be fetched."""
    parts = urlsplit(address)
    if parts.scheme in ("http", "https"):
        return None
    return Path(unquote(parts.path) if parts.scheme == "file" else address)


def _toml(dashboard: Dashboard) -> str:
    # a JSON string is one of TOML as well
    fields = dashboard.model_dump(exclude={"name"}, exclude_defaults=True)
    return f"[{dashboard.name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in fields.items())


def _own(home: Path) -> dict[str, Dashboard]:
    path = home / OWN_SITES
    return _read(path) if path.is_file() else {}


def _read(path: Path) -> dict[str, Dashboard]:
    try:
        listed = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot read {path}", why=str(error), remedy="Mend or delete it") from error
    boards = {}
    for name, fields in listed.items():
        try:
            boards[name] = Dashboard.model_validate({**fields, "name": name} if isinstance(fields, dict) else fields)
        except ValidationError as error:
            raise ConfigurationError(
                f"cannot read {path}", why=f"{name}: {first_fault(error)}", remedy="Mend or delete it"
            ) from error
    return boards
