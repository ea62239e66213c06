"""Tries at the month of `bench/faults.py`, in processes that may be killed.

Each is forked from a process that has run the month before, so it pays for no import and compiles no statement again;
it does one try after the other, until it is killed.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import Pipe, get_context
from multiprocessing.connection import Connection, wait
from typing import ClassVar

from sqlalchemy import text

from bench.faults_injected import DAY, Breaking, Injector, Kind, Plan, Sizes
from bench.faults_month import MONTH, STAGES, Place, Run, SimulatedClock
from formulacode_dagster.models.errors import FormulaCodeError
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.releasing.dataset.gate import release_gate
from formulacode_dagster.releasing.dataset.records import month_records

TRY_SECONDS = 120
SUCCESS, STOPPED, BROKEN = range(3)
LEASES_RUN_OUT = text("UPDATE claims SET lease_until = '-infinity'")
"""In place of waiting for it."""
NO_WRITES = Sizes(0, 0, 0)


@dataclass
class End:
    """How the runs of a try ended, and what struck them."""

    code: int = STOPPED
    told: str = ""
    struck: Counter[str] = field(default_factory=Counter)
    sizes: Sizes = NO_WRITES
    is_reusable: bool = False
    """No thread of the run is left, so the process may do another try."""


@dataclass(frozen=True)
class Child:
    """A forked process, and the pipe to it."""

    pid: int
    pipe: Connection


class WarmProcess:
    """A process that has run the month, and forks those that do the tries.

    It leaves the release to them: the threads of polars do not survive a fork.
    """

    _database: ClassVar[Database]
    _idle: ClassVar[list[Child]] = []

    def __init__(self) -> None:
        """Fork it at once, while no thread of this process is at work."""
        self._pool = ProcessPoolExecutor(1, get_context("fork"))
        self._pool.submit(os.getpid).result()

    def warm(self, place: Place) -> None:
        """Run the month in it."""
        self._pool.submit(WarmProcess._warm, place).result()

    def run(self, place: Place, plans: Sequence[Plan], *, force: bool) -> End:
        """Run the month once for each of *plans*, at once; the end is the best one."""
        return self._pool.submit(WarmProcess._run, place, plans, force).result()

    def close(self) -> None:
        """End the processes."""
        self._pool.submit(WarmProcess._end_idle).result()
        self._pool.shutdown()

    @classmethod
    def _warm(cls, place: Place) -> None:
        # Ctrl-C ends the months that are not begun yet
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        cls._database = Database(place.database_url)
        Run(place, cls._database, SimulatedClock(), lambda *_: None).all_stages(STAGES[:-1])
        with cls._database.transaction() as connection:
            release_gate(connection, MONTH, month_records(connection, MONTH))
        cls._database.close()
        gc.collect()
        # or each child copies every page at its first collection
        gc.freeze()

    @classmethod
    def _end_idle(cls) -> None:
        while cls._idle:
            _reaped(cls._idle.pop(), signal.SIGKILL)

    @classmethod
    def _run(cls, place: Place, plans: Sequence[Plan], force: bool) -> End:
        working: dict[Connection, Child] = {}
        for plan in plans:
            child = cls._idle.pop() if cls._idle else _forked(cls._database)
            child.pipe.send((place, plan, force))
            working[child.pipe] = child
        ends, struck = [], Counter[str]()
        while working:
            for pipe in wait(list(working)):
                assert isinstance(pipe, Connection)
                try:
                    heard = pipe.recv()
                except EOFError:
                    is_late = _reaped(working[pipe]) == -signal.SIGALRM
                    heard = End(BROKEN, f"no end within {TRY_SECONDS} s") if is_late else End()
                if not isinstance(heard, End):
                    struck[heard] += 1
                    continue
                ends.append(heard)
                child = working.pop(pipe)
                if heard.is_reusable:
                    cls._idle.append(child)
                elif not pipe.closed:
                    _reaped(child, signal.SIGKILL)
                if heard.code != SUCCESS and working:
                    with cls._database.transaction() as connection:
                        connection.execute(LEASES_RUN_OUT)
                    cls._database.close()
        codes = [end.code for end in ends]
        code = BROKEN if BROKEN in codes else min(codes)
        return End(code, "; ".join(end.told for end in ends if end.told), struck, ends[0].sizes)


def _reaped(child: Child, ended_by: signal.Signals | None = None) -> int:
    """End code of *child*, which has ended, or is ended now."""
    if ended_by:
        os.kill(child.pid, ended_by)
    child.pipe.close()
    return os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])


def _forked(database: Database) -> Child:
    """A child that does the tries it receives."""
    here, there = Pipe()
    with warnings.catch_warnings():
        # the threads of the month have ended
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        there.close()
        return Child(pid, here)
    try:
        here.close()
        lock = threading.Lock()

        def say(word: object) -> None:
            with lock:
                there.send(word)

        injector = Injector(say)
        injector.install(database)
        while True:
            place, plan, force = there.recv()
            signal.alarm(TRY_SECONDS)
            end = run(database, injector, place, plan, say, force=force)
            signal.alarm(0)
            say(end)
    except EOFError:
        pass
    except BaseException:  # noqa: BLE001 - a child must not come back
        traceback.print_exc()
    finally:
        os._exit(BROKEN)


def run(
    database: Database, injector: Injector, place: Place, plan: Plan, say: Callable[[object], None], *, force: bool
) -> End:
    """Run the month in this process under *plan*; says what strikes it."""
    by_kind = {each.kind: each for each in plan}
    clock = SimulatedClock()
    if jump := by_kind.get(Kind.CLOCK):
        clock = SimulatedClock(jump.at, (-DAY, DAY, -3600.0, 3600.0)[jump.way % 4], lambda: say(Kind.CLOCK))
    transport = Breaking(by_kind[Kind.GITHUB_NETWORK], say) if Kind.GITHUB_NETWORK in by_kind else None
    injector.restart(plan, place.home)
    before, code, told = threading.active_count(), SUCCESS, ""
    try:
        Run(place, database, clock, injector.disturb, transport, force).all_stages()
    except FormulaCodeError as error:
        code, told = STOPPED, f"{type(error).__name__}: {error}"
    except BaseException as error:  # noqa: BLE001 - a finding, unless it is the fault itself
        code = STOPPED if isinstance(error, OSError) and plan else BROKEN
        told = "".join(traceback.format_exception(error))[-3000:]
    sizes = Sizes(**{name: injector.counts[name] for name in ("rows", "commits", "files")})
    return End(code, told, sizes=sizes, is_reusable=threading.active_count() <= before)
