"""The code location: what `workspace.yaml` points to."""

from formulacode_dagster.orchestration.build import build_definitions
from resources.settings import load_env_file

load_env_file()
defs = build_definitions()
