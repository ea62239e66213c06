"""The code location: what `workspace.yaml` points to."""

import gc

from formulacode_dagster.orchestration.build import build_definitions, ignore_beta_warnings

ignore_beta_warnings()
was_enabled = gc.isenabled()
# what is loaded stays: to look for garbage in it takes a sixth of the time, here and whenever it is looked for again
gc.disable()
try:
    defs = build_definitions()
finally:
    gc.freeze()
    if was_enabled:
        gc.enable()
