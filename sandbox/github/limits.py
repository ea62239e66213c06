"""GitHub's limits for a caller, and its messages of refusal."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from formulacode_dagster.models.base import Frozen


class Resource(StrEnum):
    """The primary budgets, each counted apart, as named in `x-ratelimit-resource`."""

    CORE = "core"
    CODE_SEARCH = "code_search"
    GRAPHQL = "graphql"


class Limits(Frozen):
    """The limits of the public API. None means no limit. Windows are settings, so that a test need not wait an hour."""

    core: int | None = Field(default=5_000, description="REST requests per user in `primary_seconds`")
    graphql: int | None = Field(default=5_000, description="GraphQL points per user in `primary_seconds`")
    code_search: int | None = Field(default=10, description="REST code searches per user in `search_seconds`")
    anonymous_core: int | None = Field(default=60, description="REST requests without a token in `primary_seconds`")
    primary_seconds: float = 3_600
    search_seconds: float = 60

    concurrent: int | None = Field(default=100, description="requests under way at once, REST and GraphQL together")
    rest_points: int | None = Field(default=900, description="secondary points of REST in `secondary_seconds`")
    graphql_points: int | None = Field(default=2_000, description="secondary points of GraphQL in `secondary_seconds`")
    graphql_seconds: float | None = Field(default=60, description="of GraphQL's answers in `secondary_seconds`")
    all_seconds: float | None = Field(default=90, description="of all answers in `secondary_seconds`")
    secondary_seconds: float = 60
    retry_after_seconds: int | None = Field(
        default=60, description="what a secondary limit asks to wait; None leaves the header out, and lasts a minute"
    )

    search_cap: int = Field(default=1_000, description="results that a search shows, however many it counts")
    page: int = Field(default=100, description="largest page of a connection, and of a REST list")
    graphql_nodes: int = Field(default=500_000, description="nodes that one query may ask for")
    heaviest_answer: int | None = Field(
        default=None, description="bytes of a GraphQL answer above which it becomes a 502, as heavy pages do"
    )

    def primary(self, resource: Resource, *, anonymous: bool) -> int | None:
        """The budget of *resource* for one window."""
        if not anonymous:
            return {
                Resource.CORE: self.core,
                Resource.CODE_SEARCH: self.code_search,
                Resource.GRAPHQL: self.graphql,
            }[resource]
        return self.anonymous_core if resource is Resource.CORE else 0

    def window(self, resource: Resource) -> float:
        """Seconds after which the budget of *resource* is whole again."""
        return self.search_seconds if resource is Resource.CODE_SEARCH else self.primary_seconds
