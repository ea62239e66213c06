"""An `astropy/astropy` for the library, and the address it is served at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx

NAME = "astropy/astropy"
FACTS: dict[str, Any] = {
    NAME: {
        "former_names": ["astro/py"],
        "issues": [
            {
                "number": 9,
                "title": "Sky coordinates are slow",
                "body": "@eve measured it, see #10",
                "author": "mallory-slow",
                "created_at": "2024-01-01T00:00:00Z",
                "edits": [{"edited_at": "2024-04-01T00:00:00Z", "body": "The cache solved it"}],
                "comments": [{"author": "bob", "body": "Same here", "created_at": "2024-01-02T00:00:00Z"}],
            },
            {"number": 10, "title": "Matching catalogues", "body": "#16222", "created_at": "2024-01-01T00:00:00Z"},
        ],
        "pull_requests": [
            {
                "number": 16222,
                "title": "Faster sky coordinates",
                "body": "Fixes #9. The tables were built anew each time.",
                "author": "ada",
                "labels": ["performance"],
                "created_at": "2024-03-01T00:00:00Z",
                "merged_at": "2024-03-10T00:00:00Z",
                "files": {"sky.py": "from functools import cache\ntable = build_sky_table(catalogue, order=3)\n"},
                "titles": [{"edited_at": "2024-03-05T00:00:00Z", "title": "Faster sky coordinates (again)"}],
            },
            {
                "number": 16300,
                "title": "Everything at once",
                "created_at": "2024-03-11T00:00:00Z",
                "merged_at": "2024-03-12T00:00:00Z",
                "files": {f"part{n:03}.py": f"x = {n}\n" for n in range(310)},
            },
            {
                "number": 16400,
                "title": "More than GitHub lists",
                "created_at": "2024-03-13T00:00:00Z",
                "merged_at": "2024-03-14T00:00:00Z",
                "files": {f"part{n:04}.py": f"x = {n}\n" for n in range(3_010)},
            },
        ],
    }
}


@dataclass(frozen=True)
class Served:
    """The sandbox's address and its books."""

    url: str

    def books(self) -> dict[str, Any]:
        told: dict[str, Any] = httpx.get(f"{self.url}/_sandbox/calls").json()
        return told
