"""What the attempts at images look like on the asset's page."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from formulacode_dagster.store.attempts import AttemptSummary


def attempts_metadata(summary: AttemptSummary) -> dict[str, Any]:
    """Attempts, their seconds, which rules won images, and where attempts were lost."""
    losses = [(loss.stage, loss.kind, loss.next_rule or "—", count) for loss, count in summary.losses]
    return {
        "attempts": summary.attempts,
        "attempt_seconds": round(summary.seconds, 1),
        "rules_applied": _table(("rule", "images"), summary.rules),
        "losses": _table(("stage", "kind", "tried next", "attempts"), losses),
    }


def _table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> dg.MarkdownMetadataValue:
    if not rows:
        return dg.MetadataValue.md("none")
    lines = [columns, ["---"] * len(columns), *rows]
    return dg.MetadataValue.md("\n".join(f"| {' | '.join(map(str, line))} |" for line in lines))
