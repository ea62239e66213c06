"""Lines of a commit's files that its tests ran, from Codecov's API v2.

https://docs.codecov.com/reference/repos_totals_retrieve: totals of a commit, and of each of its files. A commit's total
is never used for a file: a file that the report lacks has no figure.
"""

from __future__ import annotations

import json
from types import TracebackType
from typing import Self

from pydantic import Field, ValidationError

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.sources.dashboards.faults import Fault
from formulacode_dagster.sources.dashboards.server import Server

PACE = 0.5
"""Seconds between two requests: Codecov asks for no more than a few a second."""
SERVICE = "github"


class FileCoverage(Frozen):
    """Test coverage of a file; counts are executable lines."""

    path: str
    lines: int = Field(ge=0)
    hits: int = Field(ge=0)

    @property
    def share(self) -> float | None:
        """Hits by lines; None if there are none."""
        return self.hits / self.lines if self.lines else None


class CodecovClient:
    """Asks Codecov with a *token*, or as anybody for public repositories; used as an async context manager."""

    def __init__(self, server: Server) -> None:
        self._server = server

    @classmethod
    def at(cls, url: str, token: str, *, pace: float = PACE) -> CodecovClient:
        """A client of the API at *url*, that makes a request every *pace* seconds at most."""
        return cls(Server(url, pace=pace, token=token))

    async def __aenter__(self) -> Self:
        await self._server.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._server.__aexit__(kind, error, trace)

    async def files(self, repository: str, sha: str) -> dict[str, FileCoverage] | None:
        """Return the files of the report of *sha*, by path; None if Codecov has no report of it.

        Raises OutsideSystemError when Codecov is dead, refuses the token, or answers with an invalid report.
        """
        owner, _, name = repository.partition("/")
        path = f"api/v2/{SERVICE}/{owner}/repos/{name}/totals/"
        answer = await self._server.get(path, query={"sha": sha})
        if isinstance(answer, Fault):
            remedy = "Set a valid CODECOV_TOKEN" if answer.detail in ("HTTP 401", "HTTP 403") else "Try again later"
            raise OutsideSystemError(
                "codecov", f"cannot read the coverage of {repository}", why=answer.detail, remedy=remedy
            )
        if answer.status in (404, 410):
            return None
        try:
            listed = json.loads(answer.content)["files"]
            return {row["name"]: _file(row) for row in listed if row.get("totals")}
        except (ValueError, KeyError, TypeError, AttributeError, ValidationError) as error:
            raise OutsideSystemError(
                "codecov",
                f"{repository} at {sha[:10]} has an invalid report",
                why=str(error)[:200],
                remedy="Look at CODECOV_URL",
            ) from error


def _file(row: dict[str, dict[str, int]]) -> FileCoverage:
    totals = row["totals"]
    return FileCoverage.model_validate({"path": row["name"], "lines": totals["lines"], "hits": totals["hits"]})
