"""Bare mirrors and the commits in them: fetching, reading, locating merges, eviction."""
