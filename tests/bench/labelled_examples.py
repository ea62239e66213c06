"""Labelled commits made up for tests."""

from __future__ import annotations

from bench.labelled import Entry, Example, Label, Source, Stratum
from tests.records import make_merged, make_pull_request


def example(sha: str, label: Label, stratum: Stratum, title: str, line: str = "x = 1") -> Example:
    """A commit that adds one *line*."""
    entry = Entry(
        repository="acme/wheels", sha=sha * 40, stratum=stratum, label=label, source=Source.READ, reason="made up"
    )
    patch = f"diff --git a/pkg/core.py b/pkg/core.py\n--- a/pkg/core.py\n+++ b/pkg/core.py\n@@ -0,0 +1 @@\n+{line}\n"
    facts = make_merged(repository=entry.repository, title=title, body="As discussed")
    return Example(entry, make_pull_request(facts), patch.encode())
