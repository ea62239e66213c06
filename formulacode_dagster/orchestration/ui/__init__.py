"""Dagster's web server, and the guard before it."""
