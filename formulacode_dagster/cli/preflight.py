"""`fc-data preflight`: whether every outside system answers, and with which rights."""

from __future__ import annotations

import typer

from .console import console


def preflight() -> None:
    """Check that every outside system answers, and with which rights; status 1 when one is broken."""
    from resources.probes import Health

    from .operate import check_systems
    from .terminal import show_findings

    findings = check_systems()
    show_findings(console, findings)
    raise typer.Exit(1 if any(finding.health is Health.BROKEN for finding in findings) else 0)
