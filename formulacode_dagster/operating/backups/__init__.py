"""Backups of what cannot be recreated: the platform's database, and Dagster's storage."""
