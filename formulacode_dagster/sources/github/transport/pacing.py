"""Pacing below GitHub's documented ceilings, so that secondary limits are never hit. Pure: the past in, a wait out.

Ceilings are of requests, of requests in flight, and of GitHub's own time, which is estimated by how long answers take.

Secondary limits punish bursts, not volume: turns are therefore spaced evenly after a small burst. Searches are so few
that a minute's worth may go together, as GitHub counts them. GitHub counts per user; one pace for all tokens of this
machine stays below that whoever owns them, and the hourly primary budgets bind long before it does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from .answers import Resource

MINUTE = 60.0
QUERY_SECONDS = 10.0
"""GitHub gives up on an answer after them, with 502 or 504."""
FIRST_SECONDS = 1.0
"""Seconds that an answer is expected to take until there was one."""
BURST_PAID_SECONDS = 20.0
"""As many seconds' worth of answers may be taken together: with a minute's, they stay below GitHub's ceilings."""
LONGEST_DEBT = 2 * MINUTE
"""Answers beyond that are waited for as long, at most."""
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
    rest_seconds: float = 22.0
    graphql_seconds: float = 45.0
    """Seconds of answers a minute. GitHub allows 60 CPU seconds for GraphQL, 90 with REST, shows none of them, and says
    that the total response time is a rough estimate (same page, "About secondary rate limits").
    """

    def per_minute(self, lane: Lane) -> int:
        """Turns a minute in *lane* at full pace."""
        return {
            Lane.REST: self.rest_points,
            Lane.GRAPHQL: self.graphql_points,
            Lane.CODE_SEARCH: self.code_searches,
        }[lane]

    def seconds_per_minute(self, lane: Lane) -> float:
        """Seconds a minute that GitHub may spend on the answers of *lane*."""
        return self.graphql_seconds if lane is Lane.GRAPHQL else self.rest_seconds

    def spacing(self, lane: Lane) -> float:
        """Seconds between turns in *lane* at full pace."""
        return MINUTE / self.per_minute(lane)


@dataclass
class Pace:
    """When the next turn of each lane is due, or its last turns were, and by how much everything was slowed down."""

    due: dict[Lane, float] = field(default_factory=dict)
    recent: dict[Lane, list[float]] = field(default_factory=dict)
    paid: dict[Lane, float] = field(default_factory=dict)
    """When the seconds of all answers so far are paid off, at the rate that is allowed."""
    typical: dict[Lane, float] = field(default_factory=dict)
    """Seconds that an answer took of late: charged in advance, since many requests are in flight."""
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
        turn = max(
            self._until_window(lane, pacing, now)
            if lane in BY_WINDOW
            else self._due(lane, pacing, now) - now - pacing.burst_seconds
            for lane in LANES[resource]
        )
        return max(turn, self._paid(LANES[resource][0], now) - now - BURST_PAID_SECONDS)

    def take(self, resource: Resource, pacing: Pacing, now: float) -> float:
        """A call of *resource* goes now; returns the seconds that its answer is expected to take."""
        for lane in LANES[resource]:
            if lane in BY_WINDOW:
                self.recent[lane] = [*self.recent.get(lane, ()), now][-pacing.per_minute(lane) :]
            else:
                self.due[lane] = max(self._due(lane, pacing, now), now) + pacing.spacing(lane) / self.share(now)
        lane = LANES[resource][0]
        expected = self.typical.get(lane, FIRST_SECONDS)
        self._pay(lane, expected, pacing, now)
        return expected

    def answered(self, resource: Resource, pacing: Pacing, now: float, *, seconds: float, expected: float) -> None:
        """The answer to a call of *resource* took *seconds*, not those *expected* when it was sent."""
        lane = LANES[resource][0]
        self._pay(lane, seconds - expected, pacing, now)
        self.typical[lane] = seconds if lane not in self.typical else 0.8 * self.typical[lane] + 0.2 * seconds

    def use_up(self, pacing: Pacing, now: float) -> None:
        """Use up the burst, since it is unknown whether it was used."""
        for lane in Lane:
            self.paid[lane] = max(self._paid(lane, now), now + BURST_PAID_SECONDS)
            if lane in BY_WINDOW:
                self.recent[lane] = [now] * pacing.per_minute(lane)
            else:
                self.due[lane] = max(self._due(lane, pacing, now), now + pacing.burst_seconds)

    def _pay(self, lane: Lane, seconds: float, pacing: Pacing, now: float) -> None:
        owed = max(self._paid(lane, now), now) + seconds * MINUTE / pacing.seconds_per_minute(lane)
        self.paid[lane] = min(owed, now + BURST_PAID_SECONDS + LONGEST_DEBT)

    def _paid(self, lane: Lane, now: float) -> float:
        paid = self.paid.get(lane, 0.0)
        # nothing is owed for longer, unless the machine's clock was put back
        return paid if paid <= now + BURST_PAID_SECONDS + LONGEST_DEBT else now + BURST_PAID_SECONDS

    def _until_window(self, lane: Lane, pacing: Pacing, now: float) -> float:
        window = MINUTE / self.share(now)
        taken = [moment for moment in self.recent.get(lane, ()) if now - window < moment <= now]
        return 0.0 if len(taken) < pacing.per_minute(lane) else taken[-pacing.per_minute(lane)] + window - now

    def _due(self, lane: Lane, pacing: Pacing, now: float) -> float:
        due = self.due.get(lane, 0.0)
        latest = now + pacing.burst_seconds + pacing.spacing(lane) / SLOWEST
        # nothing is ever due later, unless the machine's clock was put back
        return due if due <= latest else now + pacing.burst_seconds
