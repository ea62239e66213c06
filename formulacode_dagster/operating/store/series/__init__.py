"""Dashboards and breakpoints in Postgres: whole frames by dashboard, with documented columns."""
