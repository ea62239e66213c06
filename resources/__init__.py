"""What the assets are materialized with: one file per outside system. Configuration, credentials and lifecycle only;
each hands out the plain client from `formulacode_dagster`.
"""
