"""The assets: one file per artifact. No logic here: read the month's items, call the stage, report.

Import concrete submodules; `formulacode_dagster.definitions` gathers them.
"""
