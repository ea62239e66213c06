"""Dagster's launcher for Docker: `deploy/compose` names it."""

from __future__ import annotations

from dagster_docker import DockerRunLauncher

from .command_line_runs import LeavesCommandLineRuns


class ContainerRunLauncher(LeavesCommandLineRuns, DockerRunLauncher):
    """A container for each run; it ignores runs of the command line."""
