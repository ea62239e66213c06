"""Grades an agent's work in its container: standard library only, CPython 3.7 and later.

Packed with the harness of `suites/` into one archive that root's own interpreter runs.
"""
