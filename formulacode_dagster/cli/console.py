"""Where commands print."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.markup import escape

WIDTH_IN_LOGS = 140

console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else WIDTH_IN_LOGS)
complaints = Console(stderr=True, soft_wrap=True)


def complain(text: str) -> None:
    """Print a known error: one message on standard error."""
    # a message may quote what the user typed, square brackets included: it is no markup
    complaints.print(f"[bold red]error:[/] {escape(text)}", highlight=False)
