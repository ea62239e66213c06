"""One seed of `bench/faults.py`: tries with faults, tries without, and the comparison with a month without any."""

from __future__ import annotations

import importlib
import json
import os
import select
import shutil
import signal
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Self

import polars.selectors as cs
from sqlalchemy import make_url, text
from starlette.types import ASGIApp

from bench.equal_rows import COMPARED, checksum, differences, without
from bench.faults_injected import (
    DAY,
    MODEL_FAULTS,
    PASSING_GITHUB,
    Breaking,
    Flaky,
    Injection,
    Injector,
    Kind,
    Plan,
    Sizes,
)
from bench.faults_month import MONTH, Place, Run, SimulatedClock
from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.artifacts import CHANGES, IMAGES
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.tables import METADATA
from sandbox.github.app import app as github_app
from sandbox.github.faults import Faults, FaultSource, ScriptedFault
from sandbox.github.limits import Limits
from sandbox.hub import app as hub_app
from sandbox.model.app import app as model_app
from sandbox.model.faults import ModelFaults
from sandbox.server import serving

TRY_SECONDS = 120.0
CLEAN_TRIES = 4
FORCED_TRIES = 2
UNLIMITED = Limits(
    core=None, graphql=None, code_search=None, anonymous_core=None, concurrent=None, rest_points=None,
    graphql_points=None,
)  # fmt: skip
"""Limits are injected, as any fault: nothing waits for them in earnest."""
ATTEMPTS = frozenset({"attempt", "attempts"})
"""How often something was tried differs."""
SUCCESS, STOPPED, BROKEN = range(3)

_AT = "^(?:.*_at|attempts?)$"
State = dict[str, list[object]]
"""Compared rows by table; of the release, by file."""


class Ended(StrEnum):
    """How a seed ended."""

    EQUAL = "equal"
    FORCED = "by force"
    """Equal after an item that a fault had failed for good was forced, by a person; nothing was released before."""
    DIFFERS = "differs"


@dataclass
class Tried:
    """One seed, and what struck it."""

    label: str
    plan: Sequence[Plan]
    ended: Ended = Ended.EQUAL
    tries: int = 0
    struck: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)


class World:
    """A database and the sandbox's servers, for one seed after the other."""

    def __init__(self, folder: Path, server: str, name: str, wanted: dict[bool, State] | None = None) -> None:
        """*wanted* are the ends of the month without faults, for the Hub and for a folder, where they are known."""
        self._repositories, self._server, self._name = folder / "repositories", server, name
        self._home = folder / name
        self._stack = ExitStack()
        self.sizes = Sizes(0, 0, 0)
        self.wanted: dict[bool, State] = {} if wanted is None else wanted

    def __enter__(self) -> Self:
        administrator = Database(self._server)
        with administrator.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text(f'CREATE DATABASE "{self._name}"'))
        administrator.close()
        self._url = make_url(self._server).set(database=self._name).render_as_string(hide_password=False)
        with self._database() as database:
            database.migrate()
        self._github = github_app(self._repositories, limits=UNLIMITED)
        self._model, self._hub = Flaky(model_app()), Flaky(hub_app(self._home / "hub"))
        apps: dict[str, ASGIApp] = {"github": self._github, "model": self._model, "hub": self._hub}
        self._urls = {name: self._stack.enter_context(serving(app)) for name, app in apps.items()}
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def reference(self) -> Self:
        """Run the month without faults, to a folder and to the Hub, and keep how it ends."""
        for hub in (True, False):
            place = self._fresh(hub)
            code, told = self._try(place, [], [[]])
            if code != SUCCESS:
                raise RuntimeError(f"the month fails without faults: {told}")
            self.wanted[hub] = self._state(place)
        return self

    def tried(self, label: str, plan: Sequence[Plan]) -> Tried:
        """The month under *plan*."""
        tried = Tried(label, plan)
        hub = any(each.kind is Kind.HUB for tries in plan for each in tries)
        place, wanted = self._fresh(hub), self.wanted[hub]
        nothing: Plan = ()
        clean = [(nothing, False)] * CLEAN_TRIES + [(nothing, True)] * FORCED_TRIES
        told = ""
        for faults, force in [*((faults, False) for faults in plan), *clean]:
            tried.tries += 1
            tries: list[Plan] = [faults]
            if any(each.kind is Kind.SECOND_RUN for each in faults):
                tries.append([])
                tried.struck[Kind.SECOND_RUN] += 1
            code, told = self._try(place, faults, tries, tried.struck, force=force)
            if code == BROKEN:
                tried.findings.append(f"try {tried.tries}: {told}")
            # whatever was released must be what is released without faults
            state = self._state(place)
            if state["release"] and state["release"] != wanted["release"]:
                tried.findings += [f"released: {line}" for line in _differing(wanted, state, ["release"])]
            tried.findings += self._lost(state)
            if code == SUCCESS and not faults:
                tried.ended = Ended.FORCED if force else Ended.EQUAL
                tried.findings += _differing(wanted, state, wanted)
                break
        else:
            tried.findings.append(f"never through: {told}")
        if tried.findings:
            tried.ended = Ended.DIFFERS
        return tried

    def _fresh(self, hub: bool) -> Place:
        home = self._home / "home"
        for folder in (home, self._home / "hub"):
            shutil.rmtree(folder, ignore_errors=True)
        home.mkdir(parents=True)
        self._hub.app = hub_app(self._home / "hub")
        with self._database() as database, database.transaction() as connection:
            connection.execute(text("SET LOCAL session_replication_role = replica"))
            for table in METADATA.sorted_tables:
                connection.execute(table.delete())
        return Place(home, self._repositories, self._url, self._urls, hub)

    def _try(
        self,
        place: Place,
        faults: Plan,
        runs: Sequence[Plan],
        struck: Counter[str] | None = None,
        *,
        force: bool = False,
    ) -> tuple[int, str]:
        """Run the month once for each of *runs*, at once; return the first one's end and words."""
        by_kind = {each.kind: each for each in faults}
        with self._database() as database, database.transaction() as connection:
            # time passes between two tries: leases of the dead run out
            connection.execute(text("UPDATE claims SET lease_until = '-infinity'"))
        gateway = self._github.state.gateway
        gateway.faults = FaultSource(_github_faults(by_kind.get(Kind.GITHUB)))
        gateway.reset()
        self._model.app = model_app(_model_faults(by_kind.get(Kind.MODEL)))
        self._hub.restart(by_kind.get(Kind.HUB))
        reading, writing = os.pipe()
        children = [_forked(partial(_run, place, plan, writing, force=force)) for plan in runs]
        os.close(writing)
        heard = _read(reading, children)
        codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
        struck = Counter() if struck is None else struck
        struck.update(line for line in heard if not line.startswith("{"))
        struck[Kind.GITHUB] += sum(gateway.accounting.faults.values())
        struck[Kind.HUB] += self._hub.struck
        self._hub.restart(None)
        struck[Kind.MODEL] += sum(self._model_failures().values())
        ends = [json.loads(line) for line in heard if line.startswith("{")]
        told = "; ".join(end["told"] for end in ends if end["told"])
        if any(code == -signal.SIGALRM for code in codes):
            return BROKEN, f"no end within {TRY_SECONDS:.0f} s"
        if ends and not faults:
            self.sizes = Sizes(**ends[0]["sizes"])
            # what a child imports when it needs it, the next ones find
            for name in ends[0]["modules"]:
                if name not in sys.modules:
                    with suppress(Exception):
                        importlib.import_module(name)
        if any(end["code"] == BROKEN for end in ends):
            return BROKEN, told
        return (SUCCESS if SUCCESS in codes else STOPPED), told

    def _model_failures(self) -> Counter[str]:
        import httpx

        return Counter(httpx.get(f"{self._urls['model']}/_sandbox/calls").json()["faults"])

    def _state(self, place: Place) -> State:
        """What is stored and released; read in a child, as polars cannot be used before a fork and after it."""
        reading, writing = os.pipe()
        child = _forked(lambda: _tell(writing, json.dumps(self._read_state(place)).replace(str(self._home), "~")))
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            told = pipe.read()
        os.waitpid(child, 0)
        state: State = json.loads(told)
        return state

    def _read_state(self, place: Place) -> State:
        with self._database() as database, database.transaction() as connection:
            state: State = {
                artifact.table.name: [_settled(row.model_dump(mode="json")) for row in artifact.read(connection, MONTH)]
                for artifact in COMPARED
            }
            entries = ledger.entries_of(connection, MONTH)
        state["ledger"] = [entry.model_dump(mode="json", include={"stage", "item", "state"}) for entry in entries]
        released = place.destination
        state["release"] = [
            {"tag": tag, "tasks": json.loads(read.frame.drop(cs.matches(_AT)).write_json())}
            for tag in sorted(released.tags())
            if (read := released.read(Month.parse(MONTH)))
        ]
        return state

    def _lost(self, state: State) -> Iterator[str]:
        """Items that are done without a row, and rows of items that are not."""
        for table, stage in ((CHANGES.table.name, Stage.PULL_REQUESTS), (IMAGES.table.name, Stage.IMAGES)):
            rows = len(state[table])
            done = sum(
                entry["stage"] == stage and entry["state"] == ItemState.DONE and "#" in entry["item"]
                for entry in state["ledger"]
                if isinstance(entry, dict)
            )
            if rows != done:
                yield f"{rows} rows in {table}, and {done} items of {stage} are done"

    @contextmanager
    def _database(self) -> Iterator[Database]:
        database = Database(self._url)
        try:
            yield database
        finally:
            database.close()


def _forked(work: Callable[[], int]) -> int:
    """The process id of a child that does *work*, and ends with the number it returns."""
    with warnings.catch_warnings():
        # the servers' threads are idle, and hold no lock
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return child
    code = BROKEN
    try:
        code = work()
    except BaseException:  # noqa: BLE001 - a child must not come back
        traceback.print_exc()
    finally:
        os._exit(code)


def _tell(pipe: int, text: str) -> int:
    with os.fdopen(pipe, "w") as file:
        file.write(text)
    return SUCCESS


def _run(place: Place, plan: Plan, writing: int, *, force: bool) -> int:
    """The month in this process, which is a child's; what happens goes to the pipe."""
    signal.alarm(int(TRY_SECONDS))
    by_kind = {each.kind: each for each in plan}

    def say(line: str) -> None:
        os.write(writing, f"{line}\n".encode())

    database = Database(place.database_url)
    injector = Injector(plan, place.home, say)
    clock = SimulatedClock()
    if jump := by_kind.get(Kind.CLOCK):
        clock = SimulatedClock(jump.at, (-DAY, DAY, -3600.0, 3600.0)[jump.way % 4], lambda: say(Kind.CLOCK))
    transport = Breaking(by_kind[Kind.GITHUB_NETWORK], say) if Kind.GITHUB_NETWORK in by_kind else None
    injector.install(database)
    code, told = SUCCESS, ""
    try:
        Run(place, database, clock, injector.disturb, transport, force).all_stages()
    except FormulaCodeError as error:
        code, told = STOPPED, f"{type(error).__name__}: {error}"
    except BaseException as error:  # noqa: BLE001 - a finding, unless it is the fault itself
        code = STOPPED if isinstance(error, OSError) and plan else BROKEN
        told = "".join(traceback.format_exception(error))[-3000:]
    sizes = {name: injector.counts[name] for name in ("rows", "commits", "files")}
    modules = [] if plan else sorted(name for name in sys.modules if not name.startswith("_"))
    _tell(writing, json.dumps({"code": code, "told": told, "sizes": sizes, "modules": modules}) + "\n")
    return code


def _github_faults(injection: Injection | None) -> Faults:
    if injection is None:
        return Faults()
    # most requests of so small a month are GraphQL's
    fault = PASSING_GITHUB[injection.way % len(PASSING_GITHUB)]
    return Faults(scripted=(ScriptedFault(call=injection.at, times=1 + injection.way % 5, fault=fault),))


def _model_faults(injection: Injection | None) -> ModelFaults:
    if injection is None:
        return ModelFaults()
    fault = MODEL_FAULTS[injection.way % len(MODEL_FAULTS)]
    calls = range(injection.at, injection.at + 1 + injection.way % 5)
    return ModelFaults(by_call=dict.fromkeys(calls, fault), retry_after_seconds=0.01)


def _read(pipe: int, children: Sequence[int]) -> list[str]:
    """Lines that *children* write until the last of them has ended; those that do not end are killed."""
    heard, ends = b"", time.monotonic() + TRY_SECONDS + 10
    with os.fdopen(pipe, "rb", buffering=0) as file:
        while ready := select.select([file], [], [], max(0.0, ends - time.monotonic()))[0]:
            if not (part := ready[0].read(65536)):
                break
            heard += part
        else:
            for child in children:
                os.kill(child, signal.SIGKILL)
    # a process that was killed leaves no half line: each is one write
    return heard.decode().splitlines()


def _settled(row: object) -> object:
    return _without_attempts(without(row))


def _without_attempts(value: object) -> object:
    if isinstance(value, dict):
        return {name: _without_attempts(part) for name, part in value.items() if name not in ATTEMPTS}
    return [_without_attempts(part) for part in value] if isinstance(value, list) else value


def _differing(wanted: State, state: State, tables: Iterable[str]) -> list[str]:
    """Say what differs, by table: first by checksum, then the first fields of it."""
    return [
        f"{table}: {'; '.join(islice(differences(wanted[table], state[table]), 4))}"
        for table in tables
        if checksum(wanted[table]) != checksum(state[table])
    ]
