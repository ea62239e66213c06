"""The benchmark factory: everything the platform knows about pull requests, environments, images and measurements.

Nothing below ``definitions``, ``automation`` and ``cli`` imports Dagster; `assets/` and `resources/` sit on top.
"""
