"""Budgets that a month is expected to pass: a run asks before, and `preflight --month` says so."""

from __future__ import annotations

import sys

import pytest
import typer

from formulacode_dagster.cli.funnel import ask_about_budgets
from formulacode_dagster.models.items import Cost, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.spending import Spent, add_spending
from tests.support.entries import enter

MONTHS = [Month.parse("2026-02")]


@pytest.fixture
def platform(database: Database, monkeypatch: pytest.MonkeyPatch) -> Database:
    """With a month before, of ten pull requests that took 900 tokens each; the budget is 8,000."""
    entries = [
        enter(stage, f"acme/tiny#{number}", month="2026-01")
        for number in range(10)
        for stage in (Stage.PULL_REQUESTS, Stage.CLASSIFICATIONS)
    ]
    with database.transaction() as connection:
        ledger.record(connection, entries)
        cost = Cost(tokens_in=8_000, tokens_out=1_000)
        add_spending(connection, [Spent("2026-01", Stage.CLASSIFICATIONS, "run", cost)])
    monkeypatch.setenv("LLM_TOKENS_PER_MONTH", "8000")
    return database


class Terminal:
    """A person at a terminal, who answers *said*."""

    def __init__(self, said: str) -> None:
        self._said = said

    def isatty(self) -> bool:
        return True

    def readline(self, *_: int) -> str:
        return f"{self._said}\n"


def ask(store: Database, monkeypatch: pytest.MonkeyPatch, said: str | None = None, *, confirmed: bool = False) -> None:
    if said is not None:
        monkeypatch.setattr(sys, "stdin", Terminal(said))
    ask_about_budgets(store, MONTHS, confirmed=confirmed)


def test_a_run_that_will_pass_a_budget_asks_before(
    platform: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Abort):
        ask(platform, monkeypatch, "n")
    assert "2026-02 is expected to need 9,000 tokens (" in (said := capsys.readouterr().out)
    assert "LLM_TOKENS_PER_MONTH is 8,000 tokens" in said
    ask(platform, monkeypatch, "y")


def test_a_run_that_is_confirmed_or_has_no_terminal_only_warns(
    platform: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ask(platform, monkeypatch)
    ask(platform, monkeypatch, "n", confirmed=True)
    assert capsys.readouterr().out.count("is expected to need") == 2


def test_nothing_is_asked_within_the_budget_or_before_the_first_month(
    platform: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    ask_about_budgets(platform, [Month.parse("2025-12")], confirmed=False)
    monkeypatch.setenv("LLM_TOKENS_PER_MONTH", "20000")
    ask(platform, monkeypatch, "n")
    assert capsys.readouterr().out == ""
