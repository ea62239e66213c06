"""Backups of what a machine cannot take in again: the platform's database, and what Dagster remembers of its runs."""
