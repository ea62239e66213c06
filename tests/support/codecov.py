"""A Codecov on localhost: totals of commits as in its API v2, behind a token, with occasional faults."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

Files = Mapping[str, tuple[int, int, int]]
"""Hits, partials and misses by path."""


def app(reports: Mapping[tuple[str, str], Files], *, token: str = "", moments: Sequence[int] = ()) -> Starlette:
    """Return a server of *reports*, by `owner/name` and commit, for clients with *token*.

    Before anything else it answers with the statuses of *moments*, one a request; a 429 asks to wait for a moment.
    """
    waiting = list(moments)

    async def totals(request: Request) -> Response:
        if waiting:
            status = waiting.pop(0)
            return Response(status_code=status, headers={"retry-after": "0.01"} if status == 429 else {})
        if token and request.headers.get("authorization") != f"Bearer {token}":
            return JSONResponse({"detail": "Invalid token."}, status_code=401)
        repository = f"{request.path_params['owner']}/{request.path_params['name']}"
        files = reports.get((repository, request.query_params.get("sha", "")))
        if files is None:
            return JSONResponse({"detail": "The specified commit has no report."}, status_code=404)
        listed = [
            # a file of which nothing could be run is listed without figures
            {"name": path, "totals": _totals([counts]) if sum(counts) else None}
            for path, counts in sorted(files.items())
        ]
        return JSONResponse({"totals": {"files": len(files), **_totals(list(files.values()))}, "files": listed})

    return Starlette(routes=[Route("/api/v2/{service}/{owner}/repos/{name}/totals/", totals)])


def _totals(counts: Sequence[tuple[int, int, int]]) -> dict[str, int | float]:
    hits, partials, misses = (sum(each[place] for each in counts) for place in range(3))
    lines = hits + partials + misses
    share = round(100 * hits / lines, 2) if lines else 0.0
    return {"lines": lines, "hits": hits, "partials": partials, "misses": misses, "coverage": share}
