"""Which core a measurement keeps to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext

from formulacode_dagster.building.engines.machines import Machine, Turn
from formulacode_dagster.operating.cancellation.stopping import stop_request

WAIT_SECONDS = 1.0
"""Between two looks at whether a core has become free."""

Lease = Callable[[int], AbstractContextManager[bool]]
"""Takes a core, counted from the last, from all other runs on its machine; tells whether it was free."""


class Cores:
    """The cores of what is timed at the same time: no two share one while there are others."""

    def __init__(
        self,
        lease: Lease = lambda _: nullcontext(True),
        *,
        turn: Turn = nullcontext,
        building: Turn = nullcontext,
        choosing: Turn = nullcontext,
        wait_seconds: float = WAIT_SECONDS,
    ) -> None:
        """What is timed by other runs on this machine is kept off by *lease*, and what is built there by *turn*.

        *building* is the turn of who builds or tests there, *choosing* of who runs benchmarks to choose among them.
        """
        self._lock = threading.Lock()
        self._taken: list[int] = []
        self._lease = lease
        self._turn = turn
        self.building = building
        """Holds off what others would time, while a task is built or tested; none waits to time within it."""
        self.choosing = choosing
        """Likewise while benchmarks are run that are not timed."""
        self._wait_seconds = wait_seconds

    @contextmanager
    def reserved(self, choose: Callable[[Collection[int]], int]) -> Iterator[int]:
        """Take the core that *choose* gives for those that are taken, counted from the last, as long as the block.

        Waits while other runs have them all, or build there. Raises OutsideSystemError when who gives leases is gone.
        """
        with ExitStack() as stack:
            # before a core is chosen by how busy it is
            stack.enter_context(self._turn())
            core = self._take(choose, stack)
            stack.callback(self._give_back, core)
            yield core

    def _take(self, choose: Callable[[Collection[int]], int], stack: ExitStack) -> int:
        others: set[int] = set()
        while True:
            with self._lock:
                core = choose([*self._taken, *sorted(others)])
                # one that is this run's already is leased to it
                if core in self._taken or (core not in others and self._is_leased(core, stack)):
                    self._taken.append(core)
                    return core
            if core in others:
                others.clear()
                stop_request().sleep(self._wait_seconds)
            else:
                others.add(core)

    def _is_leased(self, core: int, stack: ExitStack) -> bool:
        with ExitStack() as attempt:
            if attempt.enter_context(self._lease(core)):
                stack.push(attempt.pop_all())
                return True
        return False

    def _give_back(self, core: int) -> None:
        with self._lock:
            self._taken.remove(core)


def leased_cores(machine: Machine, *, at_once: int = 1) -> Cores:
    """Cores of *machine*, each leased from its database as long as it is used, while nothing is built beside it.

    Nor are benchmarks run to choose among them, unless several tasks are measured *at_once*, which disturb each other.
    """
    choosing = machine.working if at_once == 1 else nullcontext
    return Cores(machine.core, turn=machine.timing, building=machine.working, choosing=choosing)
