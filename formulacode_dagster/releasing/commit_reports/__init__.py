"""A page for each commit at which benchmarks took a step: the commit, its discussion, and its series."""
