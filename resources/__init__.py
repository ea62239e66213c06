"""Resources of the assets: one file per outside system. Configuration, credentials and lifecycle only; each returns the
plain client from `formulacode_dagster`.
"""
