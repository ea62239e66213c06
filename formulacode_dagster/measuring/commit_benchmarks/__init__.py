"""Commits benchmarked one after the other: each built as the images of tasks are, results as asv writes its own."""
