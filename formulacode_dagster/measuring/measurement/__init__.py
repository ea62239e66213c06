"""Measurements of tasks: relevant benchmarks, sampling, statistics, verdicts."""
