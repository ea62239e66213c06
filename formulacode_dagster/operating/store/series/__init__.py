"""Dashboards and breakpoints in Postgres: whole frames by dashboard, with what each of their columns means."""
