"""The core of a measurement."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext

from formulacode_dagster.building.engines.machines import Machine, Turn
from formulacode_dagster.operating.cancellation.stopping import stop_request

WAIT_SECONDS = 1.0
"""Between two looks at whether a core has become free."""

Lease = Callable[[int], AbstractContextManager[bool]]
"""Reserves a core, counted from the last, against all other runs on its machine; yields True if it was free."""


class Cores:
    """Cores of concurrent timings: no two share one while others are free."""

    def __init__(
        self,
        lease: Lease = lambda _: nullcontext(True),
        *,
        turn: Turn = nullcontext,
        building: Turn = nullcontext,
        choosing: Turn = nullcontext,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        """*lease* keeps timings of other runs on this machine off, and *turn* their builds.

        *building* is the turn of builds and tests there, *choosing* that of selection runs.
        """
        self._lock = threading.Lock()
        self._taken: list[int] = []
        self._leases: dict[int, ExitStack] = {}
        """Lease of each core that is taken, which its last user gives back."""
        self._lease = lease
        self._turn = turn
        self.building = building
        """Holds off other timings while a task is built or tested; it must not contain a timing."""
        self.choosing = choosing
        """Likewise while benchmarks are run that are not timed."""
        self._wait_seconds = wait_seconds

    @contextmanager
    def reserved(self, choose: Callable[[Collection[int]], int]) -> Iterator[int]:
        """Take the core that *choose* gives for those that are taken, counted from the last, as long as the block.

        Waits while other runs have all of them, or build there. Raises OutsideSystemError if the lease server is gone.
        """
        with ExitStack() as stack:
            # before a core is chosen by how busy it is
            stack.enter_context(self._turn())
            core = self._take(choose)
            stack.callback(self._give_back, core)
            yield core

    def _take(self, choose: Callable[[Collection[int]], int]) -> int:
        others: set[int] = set()
        while True:
            with self._lock:
                core = choose([*self._taken, *sorted(others)])
                # one that is this run's already is leased to it
                if core in self._taken or (core not in others and self._is_leased(core)):
                    self._taken.append(core)
                    return core
            if core in others:
                others.clear()
                stop_request().sleep(self._wait_seconds)
            else:
                others.add(core)

    def _is_leased(self, core: int) -> bool:
        with ExitStack() as attempt:
            if attempt.enter_context(self._lease(core)):
                self._leases[core] = attempt.pop_all()
                return True
        return False

    def _give_back(self, core: int) -> None:
        with self._lock:
            self._taken.remove(core)
            if core not in self._taken:
                self._leases.pop(core).close()


def leased_cores(machine: Machine, *, at_once: int = 1) -> Cores:
    """Return the cores of *machine*, each leased from its database while in use, with builds held off.

    Nor are benchmarks run to choose among them, unless several tasks are measured *at_once*, which disturb each other.
    """
    choosing = machine.working if at_once == 1 else nullcontext
    return Cores(machine.core, turn=machine.timing, building=machine.working, choosing=choosing)
