"""Sites by name: those that come along, and those that a user adds."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from urllib.parse import urlsplit

from formulacode_dagster.files.atomic import disk_errors, write_atomically
from formulacode_dagster.models.errors import ConfigurationError

OWN_SITES = "dashboards.toml"
"""The file under FC_HOME with the sites that a user added."""
_SHIPPED = Path(__file__).with_name("sites.toml")
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]*")
_SCHEMES = ("http", "https", "file")


def sites_by_name(home: Path) -> dict[str, str]:
    """The address of every site that comes along or was added under *home*, whose name for one counts.

    Raises ConfigurationError when what is there is no such list.
    """
    return dict(sorted((_read(_SHIPPED) | _own(home)).items()))


def add_site(home: Path, name: str, address: str) -> None:
    """Keep the site at *address* as *name* under *home*.

    Raises ConfigurationError when it is no name or no address, OutsideSystemError when the disk is full.
    """
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name} cannot be the name of a site", remedy="Use lower-case letters, digits, `-` and `_`"
        )
    parts = urlsplit(address)
    if parts.scheme not in _SCHEMES or not (parts.netloc or parts.scheme == "file"):
        raise ConfigurationError(
            f"{address} is no address of a site", remedy="It begins with https://, http:// or file://"
        )
    sites = dict(sorted((_own(home) | {name: address}).items()))
    # a JSON string is one of TOML as well
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in sites.items())
    with disk_errors(str(home / OWN_SITES)):
        write_atomically(home / OWN_SITES, text.encode())


def _own(home: Path) -> dict[str, str]:
    path = home / OWN_SITES
    return _read(path) if path.is_file() else {}


def _read(path: Path) -> dict[str, str]:
    try:
        sites = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(f"cannot read {path}", why=str(error), remedy="Mend or delete it") from error
    wrong = [name for name, address in sites.items() if not isinstance(address, str)]
    if wrong:
        raise ConfigurationError(f"cannot read {path}", why=f"{wrong[0]} is no address", remedy="Mend or delete it")
    return sites
