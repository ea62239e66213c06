"""Steps in series of benchmark results, and the commits that caused them. Pure functions of numbers."""
