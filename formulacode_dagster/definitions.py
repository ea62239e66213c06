"""The code location: what `workspace.yaml` points to."""

import gc

# what is loaded stays: to look for garbage in it takes a sixth of the time, here and whenever it is looked for again
gc.disable()
from formulacode_dagster.orchestration.build import build_definitions  # noqa: E402

defs = build_definitions()
gc.freeze()
gc.enable()
