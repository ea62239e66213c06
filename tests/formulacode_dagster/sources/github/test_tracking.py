"""Each rule in which it fires, and the order in which they are asked."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from formulacode_dagster.models.intake import ListedRepository, ListVerdict
from formulacode_dagster.models.repository import UNKNOWN_LANGUAGE, UNKNOWN_STARS, Repository, RepositoryState
from formulacode_dagster.sources.github.tracking import TrackingRules, entry_for, judge, not_among

RULES = TrackingRules(minimum_stars=500, languages=("Python", "Jupyter Notebook"))
BEFORE, WITHIN, AFTER = (datetime(2026, month, 10, tzinfo=UTC) for month in (1, 2, 3))


def repository(state: str = "active", **known: Any) -> Repository:
    return Repository(
        **{
            "month": "2026-02",
            "id": 1,
            "node_id": "R_1",
            "full_name": "demo/project",
            "state": RepositoryState(state),
            "stars": 500,
            "language": "Python",
            "config_path": "asv.conf.json",
        }
        | known
    )


def line(name: str = "demo/project", verdict: ListVerdict = ListVerdict.ALLOW, reason: str = "we say so"):
    return ListedRepository(full_name=name, verdict=verdict, reason=reason, listed_at=AFTER)


def told(row: Repository, listed: ListedRepository | None = None, rules: TrackingRules = RULES) -> str:
    rejection = judge(row, rules, listed)
    return "tracked" if rejection is None else f"{rejection.reason}: {rejection.detail}"


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (repository(), "tracked"),
        (repository(stars=499), "few_stars: 499 < 500"),
        (repository(stars=UNKNOWN_STARS), "tracked"),
        (repository(language="jupyter notebook"), "tracked"),
        (repository(language="HTML"), "language: HTML is none of Python, Jupyter Notebook"),
        (repository(language=""), "language: no language is none of Python, Jupyter Notebook"),
        (repository(language=UNKNOWN_LANGUAGE), "tracked"),
        (repository("fork"), "fork: a fork of another repository"),
        (repository("private"), "private: not open to the public"),
        (repository("empty"), "empty: it was never pushed to"),
        (repository("archived", archived_at=BEFORE), "archived: on 2026-01-10, before 2026-02"),
        (repository("archived", archived_at=datetime(2026, 2, 1, tzinfo=UTC)), "tracked"),
        (repository("archived", archived_at=WITHIN), "tracked"),
        (repository("archived", archived_at=AFTER), "tracked"),
        (repository("archived"), "archived: since an unknown time"),
        (repository("vanished", stars=0, language=""), "tracked"),
    ],
)
def test_each_rule_fires_with_its_figure(row, why):
    assert told(row) == why


def test_a_state_speaks_before_stars_and_stars_before_the_language():
    assert told(repository("fork", stars=0, language="")).startswith("fork")
    assert told(repository("archived", archived_at=BEFORE, stars=0)).startswith("archived")
    assert told(repository(stars=0, language="")).startswith("few_stars")


def test_without_rules_every_language_and_any_number_of_stars_will_do():
    assert told(repository(stars=0, language=""), rules=TrackingRules()) == "tracked"


@pytest.mark.parametrize("state", ["fork", "private", "archived"])
def test_what_is_allowed_is_tracked_whatever_else_holds(state):
    assert told(repository(state, stars=0, language="HTML"), line()) == "tracked"


def test_nobody_can_allow_what_holds_nothing():
    assert told(repository("empty"), line()).startswith("empty")


@pytest.mark.parametrize("state", ["active", "fork", "vanished", "empty"])
def test_what_is_denied_is_rejected_first_with_the_reason_of_the_list(state):
    assert told(repository(state), line(verdict=ListVerdict.DENY)) == "denied: we say so"


def test_a_line_is_found_under_the_name_or_an_alias_in_any_case():
    allowed = line("Demo/Project")
    assert entry_for(repository(full_name="demo/PROJECT"), {"demo/project": allowed}) == allowed
    assert entry_for(repository(full_name="new/name", aliases=("demo/project",)), {"demo/project": allowed}) == allowed
    assert entry_for(repository(full_name="new/name"), {"demo/project": allowed}) is None


def test_todays_name_precedes_old_ones_and_a_denial_the_rest():
    lines = {
        "demo/project": line(),
        "old/denied": line("old/denied", ListVerdict.DENY),
        "old/allowed": line("old/allowed"),
    }
    assert entry_for(repository(aliases=("old/denied",)), lines) == lines["demo/project"]
    row = repository(full_name="new/name", aliases=("old/allowed", "old/denied"))
    assert entry_for(row, lines) == lines["old/denied"]


def test_unknown_names_are_those_that_discovery_must_look_up():
    lines = {"demo/project": line(), "old/name": line("old/name"), "some/where": line("Some/Where")}
    assert not_among(lines, [repository(aliases=("Old/Name",))]) == ("Some/Where",)
