"""Attempts at images and locks, the effect of fixes, and the contexts of images."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Connection, and_, func, select, union

from formulacode_dagster.models.attempt import AgentUse, BuildAttempt, Rung
from formulacode_dagster.models.image import EngineName
from formulacode_dagster.models.items import Cost, Stage
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.recipe import Fix, StoredContext

from . import artifacts
from .blobs import get_blob, put_blob
from .bulk import insert_new, upsert
from .spending import Spent, add_spending
from .tables import BUILD_ATTEMPTS, CONTEXTS

_COLUMNS = BUILD_ATTEMPTS.c
_CONTEXTS = CONTEXTS.c
_CONTEXT_KEYS = ("context_id", "repository_id", "repository", "base_sha")
_STORED_APART = frozenset({"log"})
IMAGES = artifacts.IMAGES.table
_AT_IMAGES = _COLUMNS.made_in == Stage.IMAGES
_NOT_ASKED = (FailureKind.AGENT_LIMITED, FailureKind.AGENT_OVERLOADED)


class AttemptEnd(NamedTuple):
    """How attempts end: stage, kind, and the rule that made the next attempt, or `` without one."""

    stage: str
    kind: str
    next_rule: str


@dataclass(frozen=True)
class AttemptSummary:
    """The attempts of one run, counted; the most frequent first."""

    attempts: int
    seconds: float
    losses: tuple[tuple[AttemptEnd, int], ...]
    rules: tuple[tuple[str, int], ...]
    """Rules whose fixes are in the final image."""


def save_attempt(connection: Connection, attempt: BuildAttempt) -> None:
    """Keep *attempt*, its log compressed and by hash. IntegrityError when its number was used before."""
    row = attempt.model_dump(mode="json", exclude=set(_STORED_APART))
    sha256 = put_blob(connection, "log", attempt.log.encode(errors="replace"))
    insert_new(connection, BUILD_ATTEMPTS, [{**row, "started_at": attempt.started_at, "log_sha256": sha256}])


def book_attempt(connection: Connection, attempt: BuildAttempt, item: str) -> None:
    """Store *attempt* at *item*, and record what an agent cost. Raises as `save_attempt`."""
    save_attempt(connection, attempt)
    spent = Spent(attempt.month, attempt.made_in, attempt.run_id, agent_cost(attempt), item)
    add_spending(connection, [spent])


def engines_of(connection: Connection, month: str) -> set[EngineName]:
    """The engines that were at work on the images of *month*."""
    tried = select(_COLUMNS.engine).where(_COLUMNS.month == month, _AT_IMAGES)
    built = select(func.jsonb_extract_path_text(IMAGES.c.document, "engine")).where(IMAGES.c.month == month)
    return {EngineName(name) for name in connection.execute(union(tried, built)).scalars()}


def last_attempt(connection: Connection, month: str, key: tuple[int, int]) -> int:
    """Return the number of the newest attempt at the task with this (repository id, number); 0 if there is none."""
    statement = select(func.coalesce(func.max(_COLUMNS.attempt), 0)).where(_of_task(month, key))
    return int(connection.execute(statement).scalar_one())


def attempts_of(connection: Connection, month: str, key: tuple[int, int]) -> list[BuildAttempt]:
    """All attempts at the task with this (repository id, number), oldest first, without their logs."""
    statement = select(*_without_log()).where(_of_task(month, key)).order_by(_COLUMNS.attempt)
    return [BuildAttempt.model_validate(dict(row)) for row in connection.execute(statement).mappings()]


def log_of_attempt(connection: Connection, month: str, key: tuple[int, int], attempt: int) -> str | None:
    """Return the whole log of one attempt; None if there is no such attempt."""
    statement = select(_COLUMNS.log_sha256).where(_of_task(month, key), _COLUMNS.attempt == attempt)
    sha256 = connection.execute(statement).scalar_one_or_none()
    return None if sha256 is None else get_blob(connection, sha256).decode(errors="replace")


def summary_of(connection: Connection, month: str, run_id: str) -> AttemptSummary:
    """Summarize the attempts of *run_id* at images of *month*."""
    names = ("repository_id", "number", "attempt", "stage", "kind", "rule", "seconds")
    statement = (
        select(*(_COLUMNS[name] for name in names), _COLUMNS.spec["fixes"].label("fixes"))
        .where(_COLUMNS.month == month, _COLUMNS.run_id == run_id, _AT_IMAGES)
        .order_by(_COLUMNS.repository_id, _COLUMNS.number, _COLUMNS.attempt)
    )
    rows = connection.execute(statement).all()
    rules = {(row.repository_id, row.number, row.attempt): row.rule for row in rows}
    losses: Counter[AttemptEnd] = Counter()
    won: Counter[str] = Counter()
    for row in rows:
        if row.kind:
            losses[
                AttemptEnd(row.stage, row.kind, rules.get((row.repository_id, row.number, row.attempt + 1), ""))
            ] += 1
        else:
            won.update(fix["rule"] for fix in row.fixes)
    return AttemptSummary(
        attempts=len(rows),
        seconds=sum(row.seconds for row in rows),
        losses=tuple(losses.most_common()),
        rules=tuple(won.most_common()),
    )


def agent_cost(attempt: BuildAttempt) -> Cost:
    """Tokens and dollars of the agent that *attempt* is by; its seconds are part of the item's."""
    return Cost(tokens_in=attempt.tokens_in, tokens_out=attempt.tokens_out, dollars=attempt.dollars)


def agents_used(connection: Connection, month: str) -> list[AgentUse]:
    """Return the cost of each agent for each pull request of *month*, over all runs, most expensive first."""
    sums = [func.sum(_COLUMNS[name]) for name in ("tokens_in", "tokens_out", "dollars", "agent_seconds")]
    keys = (_COLUMNS.repository_id, _COLUMNS.number, _COLUMNS.rule)
    statement = (
        select(*keys, func.count(), func.bool_or(and_(_COLUMNS.kind == "", _AT_IMAGES)), *sums)
        .where(_COLUMNS.month == month, _COLUMNS.rung == Rung.AGENT)
        .group_by(*keys)
    )
    used = [
        AgentUse(
            repository_id=repository_id,
            number=number,
            agent=agent,
            attempts=attempts,
            held=held,
            cost=Cost(tokens_in=int(tokens_in), tokens_out=int(tokens_out), dollars=dollars, seconds=seconds),
        )
        for repository_id, number, agent, attempts, held, tokens_in, tokens_out, dollars, seconds in connection.execute(
            statement
        )
    ]
    return sorted(used, key=lambda use: (-use.cost.dollars, -use.cost.tokens_in, use.repository_id, use.number))


def agent_costs(connection: Connection, month: str) -> dict[tuple[int, int], Cost]:
    """Return the cost of agents in *month* by (repository id, number)."""
    costs: dict[tuple[int, int], Cost] = {}
    for use in agents_used(connection, month):
        key = (use.repository_id, use.number)
        costs[key] = costs.get(key, Cost()) + use.cost
    return costs


def asked_of(connection: Connection, month: str, stage: Stage, rule: str) -> set[tuple[int, int]]:
    """(repository id, number) of the pull requests of *month* with an attempt of *stage* by *rule*, an agent's say.

    An agent that only was not to be had does not count.
    """
    statement = select(_COLUMNS.repository_id, _COLUMNS.number).where(
        _COLUMNS.month == month,
        _COLUMNS.made_in == stage,
        _COLUMNS.rule == rule,
        _COLUMNS.kind.not_in(_NOT_ASKED),
    )
    return {(row.repository_id, row.number) for row in connection.execute(statement)}


def ineffective_fixes(connection: Connection, repository_id: int) -> tuple[Fix, ...]:
    """Last fixes of attempts at images of *repository_id* that held already, and were kept as they were."""
    keys = ("month", "number", "attempt")
    statement = (
        select(*(_COLUMNS[key] for key in keys), _COLUMNS.run_id, _COLUMNS.kind, _COLUMNS.spec["fixes"].label("fixes"))
        .where(_COLUMNS.repository_id == repository_id, _AT_IMAGES)
        .order_by(*(_COLUMNS[key] for key in keys))
    )
    rows = connection.execute(statement).all()
    images = select(IMAGES.c.month, IMAGES.c.number, IMAGES.c.document["spec"]["fixes"].label("fixes"))
    built = {
        (row.month, row.number): row.fixes
        for row in connection.execute(images.where(IMAGES.c.repository_id == repository_id))
    }
    return tuple(
        Fix.model_validate(after.fixes[-1])
        for before, after in pairwise(rows)
        if (before.month, before.number, before.run_id) == (after.month, after.number, after.run_id)
        and not before.kind
        and after.fixes
        and built.get((after.month, after.number), after.fixes) != after.fixes
    )


def save_context(connection: Connection, context: StoredContext) -> None:
    """Keep *context*, in the place of one of the same content."""
    document = context.model_dump(mode="json")
    row = {name: document[name] for name in _CONTEXT_KEYS}
    upsert(connection, CONTEXTS, [{**row, "created_at": context.created_at, "document": document}])


def contexts_of(connection: Connection, repository_id: int) -> list[StoredContext]:
    """All contexts of a repository, the newest first."""
    return _contexts(connection, _CONTEXTS.repository_id == repository_id)


def contexts_named(connection: Connection, repository: str = "", prefix: str = "") -> list[StoredContext]:
    """Contexts of *repository*, or of all, whose id begins with *prefix*; the newest first."""
    is_asked = [func.lower(_CONTEXTS.repository) == repository.lower()] if repository else []
    return _contexts(connection, *is_asked, _CONTEXTS.context_id.startswith(prefix, autoescape=True))


def _contexts(connection: Connection, *conditions: ColumnElement[bool]) -> list[StoredContext]:
    statement = select(_CONTEXTS.document).where(*conditions)
    contexts = [StoredContext.model_validate(document) for document in connection.execute(statement).scalars()]
    return sorted(contexts, key=lambda context: context.newest, reverse=True)


def _of_task(month: str, key: tuple[int, int]) -> Any:
    return and_(_COLUMNS.month == month, _COLUMNS.repository_id == key[0], _COLUMNS.number == key[1])


def _without_log() -> list[Any]:
    return [_COLUMNS[name] for name in BuildAttempt.model_fields if name not in _STORED_APART]
