"""The content of deploy/, read and run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from resources.settings import Settings
from tests.support.documents import ROOT

DEPLOY = ROOT / "deploy"
COMPOSE = DEPLOY / "compose"
COMPOSE_TEXT = (COMPOSE / "compose.yaml").read_text(encoding="utf-8")
VARIABLES = frozenset(
    name
    for path in (COMPOSE / "compose.yaml", COMPOSE / "up.sh")
    for name in re.findall(r"\$\{([A-Z_]+)", path.read_text(encoding="utf-8"))
)
"""Settings of a deployment besides those of the platform."""


def compose_as_it_stands() -> Any:
    """The services, networks and volumes where nothing is set: each variable is its default."""
    text = re.sub(r"\$\{[A-Z_]+:?-([^}]*)\}", r"\1", COMPOSE_TEXT)
    return yaml.safe_load(text.replace("${COMPOSE_PROJECT_NAME}", "formulacode"))


def most_connections(runs: int, by_hand: int = 0) -> int:
    """Connections that *runs* concurrent runs, the code location and *by_hand* runs of the command line may take."""
    platform = (runs + 1 + by_hand) * Settings.model_fields["database_connections"].default
    # one for each run, the code location and the daemon, three for the web server; and three are its superuser's
    return int(platform) + (runs + by_hand + 1 + 1 + 3) + 3


def dagster_yaml(folder: Path, project: str = "formulacode") -> Any:
    """Dagster's configuration in *folder*."""
    return yaml.safe_load((folder / "dagster.yaml").read_text(encoding="utf-8").replace("@PROJECT@", project))
