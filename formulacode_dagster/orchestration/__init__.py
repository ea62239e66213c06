"""Dagster's definitions, jobs, schedules, instance and runs: everything but assets and resources."""
