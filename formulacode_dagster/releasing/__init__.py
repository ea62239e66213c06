"""Output of the platform: the dataset, registries, exports with their grader, replays, reports."""
