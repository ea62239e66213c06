from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from formulacode_dagster.building.agents.limits import ended_by_answer, ended_by_text, until_of_headers, until_of_text
from formulacode_dagster.building.agents.protocol import AgentOutcome

NOW = datetime(2026, 3, 1, 14, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("You've hit your usage limit. Try again at Mar 3rd, 2026 9:05 AM.", datetime(2026, 3, 3, 9, 5, tzinfo=UTC)),
        ("try again at 3:15 PM", datetime(2026, 3, 1, 15, 15, tzinfo=UTC)),
        ("try again at 3:15 AM.", datetime(2026, 3, 2, 3, 15, tzinfo=UTC)),
        ("resets at 5pm (UTC)", datetime(2026, 3, 1, 17, 0, tzinfo=UTC)),
        ("try again at 2026-03-02T08:00:00+01:00", datetime(2026, 3, 2, 7, 0, tzinfo=UTC)),
        ("try again at 2026-03-02 08:00:00 UTC", datetime(2026, 3, 2, 8, 0, tzinfo=UTC)),
        ('{"resetsAt": 1772380800}', datetime.fromtimestamp(1772380800, UTC)),
        ("Please try again in 4 days 3 hours 2 minutes.", NOW + timedelta(days=4, hours=3, minutes=2)),
        ("Please retry in 36.5s.", NOW + timedelta(seconds=36.5)),
        ("try again later", None),
    ],
)
def test_until_when_it_lasts_is_read(text: str, until: datetime | None) -> None:
    assert until_of_text(text, NOW) == until


@pytest.mark.parametrize(
    ("headers", "until"),
    [
        ({"Retry-After": "90"}, NOW + timedelta(seconds=90)),
        ({"retry-after": "Mon, 02 Mar 2026 00:00:00 GMT"}, datetime(2026, 3, 2, tzinfo=UTC)),
        ({"anthropic-ratelimit-unified-reset": "1772380800"}, datetime.fromtimestamp(1772380800, UTC)),
        ({"retry-after": "soon"}, None),
        ({}, None),
    ],
)
def test_until_when_it_lasts_is_read_of_headers(headers: dict[str, str], until: datetime | None) -> None:
    assert until_of_headers(headers, NOW) == until


@pytest.mark.parametrize(
    ("status", "headers", "answer", "outcome"),
    [
        (401, {}, "no", AgentOutcome.BAD_KEY),
        (403, {}, "no", AgentOutcome.BAD_KEY),
        (400, {}, "API key not valid. Please pass a valid API key.", AgentOutcome.BAD_KEY),
        (400, {}, "prompt is too long", None),
        (404, {}, "no such model", None),
        (429, {"retry-after": "3600"}, "", AgentOutcome.LIMITED),
        (429, {"retry-after": "2"}, "", None),
        (429, {}, "You exceeded your current quota", AgentOutcome.LIMITED),
        (529, {}, "Overloaded", AgentOutcome.OVERLOADED),
        (503, {}, "", AgentOutcome.OVERLOADED),
        (0, {}, "no answer in time", AgentOutcome.OVERLOADED),
    ],
)
def test_what_an_error_of_an_endpoint_means(
    status: int, headers: dict[str, str], answer: str, outcome: AgentOutcome | None
) -> None:
    ended = ended_by_answer(status, headers, answer, now=NOW)
    assert (ended.outcome if ended is not None else None) == outcome


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("Invalid API key · Please run /login", AgentOutcome.BAD_KEY),
        ("Not logged in", AgentOutcome.BAD_KEY),
        ("stream error\nYou've hit your usage limit. Try again at 3:15 PM.", AgentOutcome.LIMITED),
        ("API Error: 529 Overloaded", AgentOutcome.OVERLOADED),
        ("Selected model is at capacity: high demand", AgentOutcome.OVERLOADED),
        ("Segmentation fault", None),
    ],
)
def test_what_an_agent_says_of_its_endpoint(text: str, outcome: AgentOutcome | None) -> None:
    ended = ended_by_text(text, now=NOW)
    assert (ended.outcome if ended is not None else None) == outcome
    if outcome is AgentOutcome.LIMITED:
        assert ended is not None
        assert ended.until == datetime(2026, 3, 1, 15, 15, tzinfo=UTC)
