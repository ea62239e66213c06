"""Where the monthly reports are written."""

from __future__ import annotations

from pathlib import Path

from .base import SettingsResource, setting


class ReportsResource(SettingsResource):
    """Hands out the folder of the reports."""

    home: str | None = setting("home")

    def folder(self) -> Path:
        """`reports/` under FC_HOME; made when the first report is written."""
        return self.settings.home / "reports"
