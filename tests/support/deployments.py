"""What lies in deploy/, read and run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

from tests.support.documents import ROOT

DEPLOY = ROOT / "deploy"
COMPOSE = DEPLOY / "compose"
COMPOSE_TEXT = (COMPOSE / "compose.yaml").read_text(encoding="utf-8")
VARIABLES = frozenset(
    name
    for path in (COMPOSE / "compose.yaml", COMPOSE / "up.sh")
    for name in re.findall(r"\$\{([A-Z_]+)", path.read_text(encoding="utf-8"))
)
"""What whoever deploys may set, beside the settings of the platform."""


def compose_as_it_stands() -> Any:
    """The services, networks and volumes where nothing is set: each variable is its default."""
    text = re.sub(r"\$\{[A-Z_]+:?-([^}]*)\}", r"\1", COMPOSE_TEXT)
    return yaml.safe_load(text.replace("${COMPOSE_PROJECT_NAME}", "formulacode"))


def dagster_yaml(folder: Path, project: str = "formulacode") -> Any:
    """Dagster's configuration in *folder*."""
    return yaml.safe_load((folder / "dagster.yaml").read_text(encoding="utf-8").replace("@PROJECT@", project))
