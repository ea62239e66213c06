"""Where the monthly reports are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg


class ReportsResource(dg.ConfigurableResource[Any]):
    """Hands out the folder of the reports."""

    home: str

    def folder(self) -> Path:
        """`reports/` under FC_HOME; made when the first report is written."""
        return Path(self.home) / "reports"
