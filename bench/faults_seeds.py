"""One seed of `bench/faults.py`: tries with faults, tries without, and the comparison with a month without any."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import Self

import polars.selectors as cs
from pydantic import Field
from sqlalchemy import func, make_url, select, text
from starlette.types import ASGIApp

from bench.equal_rows import COMPARED, checksum, differences, without
from bench.faults_injected import MODEL_FAULTS, PASSING_GITHUB, Flaky, Injection, Kind, Plan, Sizes
from bench.faults_month import MONTH, Place
from bench.faults_tries import BROKEN, LEASES_RUN_OUT, SUCCESS, End, WarmProcess
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import CHANGES, IMAGES, RELEASES, SEARCH_GAPS
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.tables import METADATA
from formulacode_dagster.sources.github.checks import searches_complete
from sandbox.github.app import app as github_app
from sandbox.github.faults import Faults, FaultSource, ScriptedFault
from sandbox.github.limits import Limits
from sandbox.hub import app as hub_app
from sandbox.model.app import app as model_app
from sandbox.model.faults import Fault as ModelFault
from sandbox.model.faults import ModelFaults
from sandbox.server import serving

CLEAN_TRIES = 4
FORCED_TRIES = 2
UNLIMITED = Limits(
    core=None, graphql=None, code_search=None, anonymous_core=None, concurrent=None, rest_points=None,
    graphql_points=None,
)  # fmt: skip
"""Limits are injected, as any fault: nothing waits for them in earnest."""
ATTEMPTS = frozenset({"attempt", "attempts"})
"""How often something was tried differs."""
EMPTIED = "; ".join(
    ["SET LOCAL session_replication_role = replica", *(str(table.delete()) for table in METADATA.sorted_tables)]
)

_AT = "^(?:.*_at|attempts?)$"
State = dict[str, list[object]]
"""Compared rows by table; of the release, by file."""


class Ended(StrEnum):
    """How a seed ended."""

    EQUAL = "equal"
    FORCED = "by force"
    """Equal after an item that a fault had failed for good was forced, by a person; nothing was released before."""
    SHORT = "short"
    """GitHub's code search stayed short of its own count, which a check reports; what it found is as without faults."""
    DIFFERS = "differs"


@dataclass
class Tried:
    """One seed, and what struck it."""

    seed: int
    plan: Sequence[Plan]
    ended: Ended = Ended.EQUAL
    tries: int = 0
    struck: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


class CountedFaults(ModelFaults):
    """Faults of the model, which count how often they struck."""

    struck: Counter[str] = Field(default_factory=Counter)

    def of(self, call: int) -> ModelFault | None:
        """The fault of the *call*-th call."""
        if fault := super().of(call):
            self.struck[Kind.MODEL] += 1
        return fault


class World:
    """A database, the sandbox's servers, and a warm process, for one seed after the other."""

    def __init__(self, folder: Path, server: str, name: str) -> None:
        self._repositories, self._server, self._name = folder / "repositories", server, name
        self._home = folder / name
        self._stack = ExitStack()
        self.sizes = Sizes(0, 0, 0)
        self.wanted: dict[bool, State] = {}
        """Ends of the month without faults, for the Hub and for a folder."""

    def __enter__(self) -> Self:
        administrator = Database(self._server)
        with administrator.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(f'CREATE DATABASE "{self._name}"'))
        administrator.close()
        self._url = make_url(self._server).set(database=self._name).render_as_string(hide_password=False)
        self._database = Database(self._url)
        self._stack.callback(self._database.close)
        self._database.migrate()
        self._process = WarmProcess()
        self._stack.callback(self._process.close)
        self._github = github_app(self._repositories, limits=UNLIMITED)
        self._model, self._hub = Flaky(model_app()), Flaky(hub_app(self._home / "hub"))
        apps: dict[str, ASGIApp] = {"github": self._github, "model": self._model, "hub": self._hub}
        self._urls = {name: self._stack.enter_context(serving(app)) for name, app in apps.items()}
        self._process.warm(self._fresh(hub=False))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def prepare(self, wanted: dict[bool, State]) -> None:
        """Unless *wanted* has the ends of the month without faults, run it, to the Hub and to a folder."""
        self.wanted = wanted
        for hub in () if wanted else (True, False):
            place = self._fresh(hub)
            end = self._try(place, [])
            if end.code != SUCCESS:
                raise RuntimeError(f"the month fails without faults: {end.told}")
            self.wanted[hub], self.sizes = self._state(place), end.sizes

    def tried(self, seed: int, plan: Sequence[Plan]) -> Tried:
        """The month under *plan*."""
        tried = Tried(seed, plan)
        hub = any(each.kind is Kind.HUB for tries in plan for each in tries)
        place, wanted = self._fresh(hub), self.wanted[hub]
        nothing: Plan = ()
        clean = [(nothing, False)] * CLEAN_TRIES + [(nothing, True)] * FORCED_TRIES
        told = ""
        for faults, force in [*((faults, False) for faults in plan), *clean]:
            tried.tries += 1
            end = self._try(place, faults, force=force)
            tried.struck += end.struck
            told = end.told
            if end.code == BROKEN:
                tried.findings.append(f"try {tried.tries}: {told}")
            tried.findings += self._lost()
            compare = invented if (is_short := self._is_short()) else _differing
            if end.code == SUCCESS:
                tried.ended = Ended.SHORT if is_short else Ended.FORCED if force else Ended.EQUAL
                tried.findings += compare(wanted, self._state(place), wanted)
                break
            # whatever was released must be what is released without faults
            if place.destination.tags():
                found = compare(wanted, {"release": _released(place)}, ["release"])
                tried.findings += [f"released: {line}" for line in found]
        else:
            tried.findings.append(f"never through: {told}")
        if tried.findings:
            tried.ended = Ended.DIFFERS
        return tried

    def _fresh(self, hub: bool) -> Place:
        home = self._home / "home"
        for folder in (home, self._home / "hub"):
            shutil.rmtree(folder, ignore_errors=True)
        home.mkdir(parents=True, exist_ok=True)
        self._hub.app = hub_app(self._home / "hub")
        with self._database.transaction() as connection:
            connection.exec_driver_sql(EMPTIED)
        return Place(home, self._repositories, self._url, self._urls, hub)

    def _try(self, place: Place, faults: Plan, *, force: bool = False) -> End:
        """Run the month once, or twice at the same time, with *faults*."""
        by_kind = {each.kind: each for each in faults}
        with self._database.transaction() as connection:
            connection.execute(LEASES_RUN_OUT)
        gateway = self._github.state.gateway
        gateway.faults = FaultSource(_github_faults(by_kind.get(Kind.GITHUB)))
        gateway.reset()
        of_model = _model_faults(by_kind.get(Kind.MODEL))
        self._model.app = model_app(of_model)
        self._hub.restart(by_kind.get(Kind.HUB))
        second: list[Plan] = [[]] if Kind.SECOND_RUN in by_kind else []
        end = self._process.run(place, [faults, *second], force=force)
        end.struck[Kind.SECOND_RUN] += len(second)
        end.struck[Kind.GITHUB] += sum(gateway.accounting.faults.values())
        end.struck[Kind.HUB] += self._hub.struck
        end.struck += of_model.struck
        self._hub.restart(None)
        return end

    def _state(self, place: Place) -> State:
        """What is stored and released."""
        with self._database.transaction() as connection:
            state: State = {
                artifact.table.name: [_settled(row.model_dump(mode="json")) for row in artifact.read(connection, MONTH)]
                for artifact in COMPARED
            }
            entries = ledger.entries_of(connection, MONTH)
        state["ledger"] = [entry.model_dump(mode="json", include={"stage", "item", "state"}) for entry in entries]
        state["release"] = _released(place)
        settled: State = json.loads(json.dumps(state).replace(str(self._home), "~"))
        return settled

    def _is_short(self) -> bool:
        with self._database.transaction() as connection:
            return not searches_complete(SEARCH_GAPS.read(connection, MONTH)).passed

    def _lost(self) -> Iterator[str]:
        """Items that are done without a row, and rows of items that are not."""
        for table, stage in ((CHANGES.table, Stage.PULL_REQUESTS), (IMAGES.table, Stage.IMAGES)):
            with self._database.transaction() as connection:
                rows = connection.execute(select(func.count()).select_from(table)).scalar_one()
                done = sum(
                    entry.state is ItemState.DONE and "#" in entry.item
                    for entry in ledger.entries_of(connection, MONTH, stage)
                )
            if rows != done:
                yield f"{rows} rows in {table.name}, and {done} items of {stage} are done"


def _released(place: Place) -> list[object]:
    return [
        {"tag": tag, "tasks": json.loads(read.frame.drop(cs.matches(_AT)).write_json())}
        for tag in sorted(place.destination.tags())
        if (read := place.destination.read(Month.parse(MONTH)))
    ]


def _github_faults(injection: Injection | None) -> Faults:
    if injection is None:
        return Faults()
    # most requests of so small a month are GraphQL's
    fault = PASSING_GITHUB[injection.way % len(PASSING_GITHUB)]
    return Faults(scripted=(ScriptedFault(call=injection.at, times=1 + injection.way % 5, fault=fault),))


def _model_faults(injection: Injection | None) -> CountedFaults:
    if injection is None:
        return CountedFaults()
    fault = MODEL_FAULTS[injection.way % len(MODEL_FAULTS)]
    calls = range(injection.at, injection.at + 1 + injection.way % 5)
    return CountedFaults(by_call=dict.fromkeys(calls, fault), retry_after_seconds=0.01)


def _settled(row: object) -> object:
    return _without_attempts(without(row))


def _without_attempts(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_attempts(part) for name, part in value.items() if name not in ATTEMPTS}
    return [_without_attempts(part) for part in value] if isinstance(value, list) else value


def invented(wanted: State, state: State, tables: Iterable[str]) -> list[str]:
    """Say which rows a month without faults does not have, by table; of a release, which tasks."""
    return [
        f"{table}: invented {row}"
        # a release's row counts its tasks
        for table in tables
        if table != RELEASES.table.name
        for known in [{checksum([row]) for row in _single(wanted[table])}]
        for row in _single(state[table])
        if checksum([row]) not in known
    ]


def _single(rows: Sequence[object]) -> Iterator[object]:
    """Yield *rows*, each task of a release by itself."""
    for row in rows:
        if isinstance(row, dict) and row.keys() == {"tag", "tasks"}:
            yield from ({"tag": row["tag"], "task": task} for task in row["tasks"])
        else:
            yield row


def _differing(wanted: State, state: State, tables: Iterable[str]) -> list[str]:
    """Say what differs, by table: first by checksum, then the first fields of it."""
    return [
        f"{table}: {'; '.join(islice(differences(wanted[table], state[table]), 4))}"
        for table in tables
        if checksum(wanted[table]) != checksum(state[table])
    ]
