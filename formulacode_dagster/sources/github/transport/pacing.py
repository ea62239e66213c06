"""Pacing below GitHub's documented ceilings, so that secondary limits are never hit. Pure: the past in, a wait out.

Secondary limits punish bursts, not volume: turns are therefore spaced evenly after a small burst. Searches are so few
that a minute's worth may go together, as GitHub counts them. GitHub counts per user; one pace for all tokens of this
machine stays below that whoever owns them, and the hourly primary budgets bind long before it does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from .answers import Resource

MINUTE = 60.0
SLOWEST = 1 / 16
RECOVERY_SECONDS = 300.0
"""After a secondary limit the pace is halved; it doubles again in so many seconds."""


class Lane(StrEnum):
    """Lanes that GitHub counts by the minute. Searches are REST calls too, and take a turn in both."""

    REST = "rest"
    GRAPHQL = "graphql"
    CODE_SEARCH = "code_search"


LANES = {
    Resource.CORE: (Lane.REST,),
    Resource.GRAPHQL: (Lane.GRAPHQL,),
    Resource.CODE_SEARCH: (Lane.REST, Lane.CODE_SEARCH),
}

BY_WINDOW = (Lane.CODE_SEARCH,)


@dataclass(frozen=True)
class Pacing:
    """Our ceilings. GitHub's are 900, 2,000 and 10 per minute, and 100 concurrent requests.

    A minute, the burst and earlier requests in flight together stay below GitHub's. A REST call and a GraphQL query
    count one point each, whatever they cost of the primary limit
    (docs.github.com/en/rest/using-the-rest-api/rate-limits-for-the-rest-api, "Calculating points").
    """

    concurrent: int = 50
    rest_points: int = 770
    graphql_points: int = 1_750
    code_searches: int = 9
    burst_seconds: float = 6.0
    """Turns of this many seconds may be taken together."""

    def per_minute(self, lane: Lane) -> int:
        """Turns a minute in *lane* at full pace."""
        return {
            Lane.REST: self.rest_points,
            Lane.GRAPHQL: self.graphql_points,
            Lane.CODE_SEARCH: self.code_searches,
        }[lane]

    def spacing(self, lane: Lane) -> float:
        """Seconds between turns in *lane* at full pace."""
        return MINUTE / self.per_minute(lane)


@dataclass
class Pace:
    """When the next turn of each lane is due, or its last turns were, and by how much everything was slowed down."""

    due: dict[Lane, float] = field(default_factory=dict)
    recent: dict[Lane, list[float]] = field(default_factory=dict)
    slowed_to: float = 1.0
    slowed_at: float = 0.0

    def share(self, now: float) -> float:
        """The share of the full pace that is kept now, from 1/16 to 1."""
        since = max(0.0, now - self.slowed_at)
        return min(1.0, self.slowed_to * 2 ** min(since / RECOVERY_SECONDS, 10.0))

    def slow_down(self, now: float, *, asked_at: float) -> None:
        """Halve the pace, since GitHub refused requests sent *asked_at*; concurrent refusals halve it once."""
        if self.slowed_at and asked_at <= self.slowed_at <= now:
            return
        self.slowed_to, self.slowed_at = max(SLOWEST, self.share(now) / 2), now

    def slots(self, pacing: Pacing, now: float) -> int:
        """Return how many requests may be in flight."""
        return max(1, int(pacing.concurrent * self.share(now)))

    def wait(self, resource: Resource, pacing: Pacing, now: float) -> float:
        """Seconds until a call of *resource* may go; 0 when it may go now."""
        return max(
            self._until_window(lane, pacing, now)
            if lane in BY_WINDOW
            else self._due(lane, pacing, now) - now - pacing.burst_seconds
            for lane in LANES[resource]
        )

    def take(self, resource: Resource, pacing: Pacing, now: float) -> None:
        """A call of *resource* goes now."""
        for lane in LANES[resource]:
            if lane in BY_WINDOW:
                self.recent[lane] = [*self.recent.get(lane, ()), now][-pacing.per_minute(lane) :]
            else:
                self.due[lane] = max(self._due(lane, pacing, now), now) + pacing.spacing(lane) / self.share(now)

    def use_up(self, pacing: Pacing, now: float) -> None:
        """Use up the burst, since it is unknown whether it was used."""
        for lane in Lane:
            if lane in BY_WINDOW:
                self.recent[lane] = [now] * pacing.per_minute(lane)
            else:
                self.due[lane] = max(self._due(lane, pacing, now), now + pacing.burst_seconds)

    def _until_window(self, lane: Lane, pacing: Pacing, now: float) -> float:
        window = MINUTE / self.share(now)
        taken = [moment for moment in self.recent.get(lane, ()) if now - window < moment <= now]
        return 0.0 if len(taken) < pacing.per_minute(lane) else taken[-pacing.per_minute(lane)] + window - now

    def _due(self, lane: Lane, pacing: Pacing, now: float) -> float:
        due = self.due.get(lane, 0.0)
        latest = now + pacing.burst_seconds + pacing.spacing(lane) / SLOWEST
        # nothing is ever due later, unless the machine's clock was put back
        return due if due <= latest else now + pacing.burst_seconds
