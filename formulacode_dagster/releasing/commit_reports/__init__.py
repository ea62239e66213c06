"""A page for each commit at which benchmarks took a step: what it is, what was said of it, and its series."""
