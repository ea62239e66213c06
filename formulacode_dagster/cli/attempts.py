"""Output of `fc-data why` for an item: its judges, the attempts at its lock and image, and every measurement."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape
from sqlalchemy import Connection

from formulacode_dagster.models.attempt import BuildAttempt
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.operating.store.artifacts import CLASSIFICATIONS
from formulacode_dagster.operating.store.attempts import attempts_of, log_of_attempt
from formulacode_dagster.operating.store.lookup import find_pull_request
from formulacode_dagster.operating.store.measurements import measurements_of

from .console import table_of
from .terminal import plain


def show_judges(console: Console, connection: Connection, item: ItemName) -> None:
    """Print one line for each judge of *item*, with its quotes from the diff; nothing without judges."""
    task = _task(connection, item)
    if task is None:
        return
    month, key = task
    verdict = CLASSIFICATIONS.read_keys(connection, month, [key]).get(key)
    if verdict is None:
        return
    table = table_of("judge", "performance", "category", "difficulty", "confidence", "quotes", title="Who judged it")
    for opinion in verdict.opinions or (verdict,):
        table.add_row(
            escape(opinion.model),
            "yes" if opinion.is_performance else "no",
            opinion.category.value,
            opinion.difficulty.value,
            f"{opinion.confidence:.2f}",
            escape(plain("\n".join(opinion.evidence))),
        )
    console.print(table)
    if verdict.disagreements:
        console.print(f"They disagree on {' and '.join(verdict.disagreements)}.", highlight=False)


def show_attempts(console: Console, connection: Connection, item: ItemName) -> None:
    """One line for each attempt at the lock or the image of *item*; nothing when there was none."""
    task = _task(connection, item)
    attempts = [] if task is None else attempts_of(connection, *task)
    if not attempts:
        return
    headings = ("attempt", "started", "ended in", "status", "seconds", "rule", "why")
    table = table_of(*headings, title="Attempts at lock and image")
    for attempt in attempts:
        status = (
            "killed"
            if attempt.rc is None and attempt.kind == "timeout"
            else ""
            if attempt.rc is None
            else str(attempt.rc)
        )
        started = f"{attempt.started_at:%Y-%m-%d %H:%M:%S}"
        evidence = [fix.evidence for fix in attempt.spec.fixes[-1:]] if attempt.rule else []
        words = plain("; ".join(filter(None, [*evidence, attempt.detail, _agents_cost(attempt)])))
        table.add_row(
            str(attempt.attempt),
            started,
            attempt.stage,
            status,
            f"{attempt.seconds:.1f}",
            escape(attempt.rule),
            escape(words[:400]),
        )
    console.print(table)


def _agents_cost(attempt: BuildAttempt) -> str:
    tokens = attempt.tokens_in + attempt.tokens_out
    return f"{attempt.agent}: {tokens:,} tokens, ${attempt.dollars:.2f}" if attempt.agent else ""


def show_measurements(console: Console, connection: Connection, item: ItemName) -> None:
    """One line for each measurement of *item*, oldest first; nothing when there was none."""
    task = _task(connection, item)
    measurements = [] if task is None else measurements_of(connection, *task)
    if not measurements:
        return
    headings = ("number", "why", "verdict", "speed-up", "95 %", "rounds", "timed by", "run")
    table = table_of(*headings, title="Measurements of it")
    for measured in measurements:
        table.add_row(
            str(measured.attempt),
            escape(": ".join(filter(None, [measured.occasion, plain(measured.reason)]))),
            measured.verdict.value,
            measured.speedup_text,
            f"{measured.low:.2f} to {measured.high:.2f}",
            str(measured.rounds),
            measured.provenance.source.value,
            measured.run_id,
        )
    console.print(table)


def show_log(console: Console, connection: Connection, item: ItemName, attempt: int) -> None:
    """Print the whole log of one attempt; raises ConfigurationError when there was no such attempt."""
    task = _task(connection, item)
    text = None if task is None else log_of_attempt(connection, *task, attempt)
    if text is None:
        raise ConfigurationError(f"{item} has no attempt {attempt}", remedy=f"`fc-data why {item}` lists its attempts")
    console.print(plain(text) or "the log is empty", markup=False, highlight=False)


def _task(connection: Connection, item: ItemName) -> tuple[str, tuple[int, int]] | None:
    if item.number is None:
        return None
    pull_request = find_pull_request(connection, item.repository, item.number)
    return (
        None
        if pull_request is None
        else (pull_request.facts.month, (pull_request.facts.repository_id, pull_request.facts.number))
    )
