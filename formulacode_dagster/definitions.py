"""The code location: what `workspace.yaml` points to."""

from formulacode_dagster.orchestration.build import build_definitions

defs = build_definitions()
