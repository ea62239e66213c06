"""Reports of progress."""

from collections.abc import Callable

ProgressReporter = Callable[[str], None]
"""Receives one line for people at a time."""
