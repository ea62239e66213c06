"""What grades an agent's work in the container it was done in: standard library alone, CPython 3.7 and later.

Packed with the harness of `suites/` into one archive that root's own interpreter runs.
"""
