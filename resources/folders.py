"""Folders under FC_HOME for output that people and harnesses read."""

from __future__ import annotations

from pathlib import Path

from .base import SettingsResource, setting


class ReportsResource(SettingsResource):
    """Hands out the folder of the reports."""

    home: str | None = setting("home")

    def folder(self) -> Path:
        """`reports/` under FC_HOME; made when the first report is written."""
        return self.settings.home / "reports"


class TaskFoldersResource(SettingsResource):
    """Hands out the folder of a month's tasks."""

    home: str | None = setting("home")

    def folder(self, month: str) -> Path:
        """`exports/<month>/` under FC_HOME; made when the first task is written."""
        return self.settings.home / "exports" / month
