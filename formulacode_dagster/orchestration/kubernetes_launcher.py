"""Dagster's launcher for Kubernetes, by the extra `kubernetes`: `deploy/kubernetes` names it."""

from __future__ import annotations

from dagster_k8s import K8sRunLauncher

from .command_line_runs import LeavesCommandLineRuns


class JobRunLauncher(LeavesCommandLineRuns, K8sRunLauncher):
    """A job for each run; it ignores runs of the command line."""
