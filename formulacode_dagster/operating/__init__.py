"""The ground of every stage: cancellation, files, the database, the ledger and its runner, monitoring, backups.

Knows nothing about GitHub, images or benchmarks.
"""
