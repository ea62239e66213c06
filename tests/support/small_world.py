"""A small world for which intake needs every kind of call: pages, parts, names, texts that were edited since."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from formulacode_dagster.sources.github.search_limits import SearchLimits
from tests.support.git_world import GITHUB, BareRepository

WANTED = ("acme/former",)
"""On the list; it is called `acme/now` today."""
SMALL_PAGES = {"searches": SearchLimits(shown=4, page=3), "code_searches": SearchLimits(page=4)}
"""For a `GitHubSource`: searches show few results on small pages."""


def pull(number: int, day: int, **more: Any) -> dict[str, Any]:
    created = f"2026-01-{number:02}T00:00:00Z"
    return {"number": number, "title": f"Change {number}", "author": "ada", "created_at": created} | {
        "merged_at": f"2026-02-{day:02}T12:00:00Z",
        **more,
    }


def issue(number: int, **more: Any) -> dict[str, Any]:
    return {"number": number, "title": f"Issue {number}", "author": "eve", "created_at": "2026-01-01T00:00:00Z", **more}


LATER = [{"edited_at": "2026-02-20T00:00:00Z", "body": "It was the loop, as #1 shows.", "author": "eve"}]
WORLD: Mapping[str, Any] = {
    "acme/large": {
        "pull_requests": [
            pull(1, 2, labels=[f"label-{n:02}" for n in range(33)]),
            pull(2, 3, closes=list(range(20, 32))),
            pull(3, 11),
            pull(4, 19, body="Fixes #20"),
            pull(5, 27),
        ],
        "issues": [issue(number, edits=LATER if number == 20 else []) for number in range(20, 32)],
    },
    "acme/small": {"pull_requests": [pull(1, 5), pull(2, 6)], "language": "Cython"},
    "acme/tiny": {"pull_requests": [pull(1, 7)]},
    "acme/quiet": {},
    "acme/now": {"pull_requests": [pull(1, 8)], "former_names": ["acme/former"]},
    "acme/archived": {"is_archived": True, "archived_at": "2026-01-15T00:00:00Z"},
    "acme/gone": {"is_gone": True},
}
SUITES = ("acme/large", "acme/small", "acme/tiny", "acme/quiet", "acme/archived", "acme/gone")


def write_world(folder: Path) -> Path:
    """Make the repositories and the side file in *folder*."""
    for name, facts in WORLD.items():
        made = BareRepository(folder / f"{name}.git")
        made.add("Begin", "2025-01-01T00:00:00Z", {"asv.conf.json": "{}"} if name in SUITES else {"a": "a"}, GITHUB)
        for resource in facts.get("pull_requests", ()):
            made.add(
                f"{resource['title']} (#{resource['number']})",
                resource["merged_at"],
                {f"{resource['number']}.py": "x"},
                GITHUB,
            )
        made.write()
    (folder / "sandbox.json").write_text(json.dumps({"repositories": WORLD}))
    return folder
