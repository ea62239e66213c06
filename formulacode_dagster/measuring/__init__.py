"""Is a change faster, and still right? Workloads, sampling, statistics, tests, steps in series of results."""
