"""Where commands print."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from rich.console import Console
from rich.markup import escape
from rich.table import Table

WIDTH_IN_LOGS = 140

console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else WIDTH_IN_LOGS)
complaints = Console(stderr=True, soft_wrap=True, width=None if sys.stderr.isatty() else WIDTH_IN_LOGS)


def one_of(values: Iterable[str]) -> str:
    """Return *values* for `help=`, which wraps between words; a metavar of them would break inside words."""
    return f"One of {', '.join(values)}."


def table_of(*headings: str, title: str | None = None, numbers: str = "") -> Table:
    """An empty table without a frame; long words are folded, the column called *numbers* is set to the right."""
    table = Table(title=title, title_justify="left", box=None)
    for heading in headings:
        table.add_column(heading, justify="right" if heading == numbers else "left", overflow="fold")
    return table


def complain(text: str) -> None:
    """Print a known error: one message on standard error."""
    # a message may quote what the user typed, square brackets included: it is no markup
    complaints.print(f"[bold red]error:[/] {escape(text)}", highlight=False)
