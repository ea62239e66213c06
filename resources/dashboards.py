"""The known dashboards, and the folders of their data."""

from __future__ import annotations

from pathlib import Path

from formulacode_dagster.sources.dashboards.sites import Dashboard, dashboard_named, dashboards_by_name

from .base import SettingsResource, setting


class DashboardsResource(SettingsResource):
    """Hands out the list of dashboards, and a folder for each."""

    home: str | None = setting("home")

    def named(self, name: str) -> Dashboard:
        """Return the dashboard called *name*; raises ConfigurationError if there is none."""
        return dashboard_named(self.settings.home, name)

    def names(self) -> list[str]:
        """Every name; raises ConfigurationError when the list cannot be read."""
        return list(dashboards_by_name(self.settings.home))

    def folder(self, name: str) -> Path:
        """`dashboards/` under FC_HOME has a folder for each: the downloaded files, and its tables as Parquet."""
        return self.settings.home / "dashboards" / name
