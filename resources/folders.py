"""Folders under FC_HOME for output that people and harnesses read."""

from __future__ import annotations

from pathlib import Path

from formulacode_dagster.operating.files.atomic import disk_errors, private_folder

from .base import SettingsResource, setting


class ReportsResource(SettingsResource):
    """Hands out the folder of the reports."""

    home: str | None = setting("home")

    def folder(self) -> Path:
        """`reports/` under FC_HOME, closed to other users, since months are unreleased. Raises OutsideSystemError."""
        folder = self.settings.home / "reports"
        with disk_errors(str(folder)):
            return private_folder(folder)


class TaskFoldersResource(SettingsResource):
    """Hands out the folder of a month's tasks."""

    home: str | None = setting("home")

    def folder(self, month: str) -> Path:
        """`exports/<month>/` under FC_HOME; made when the first task is written."""
        return self.settings.home / "exports" / month
