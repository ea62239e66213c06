"""Scheduling on the machine of an image store: it either builds and tests, or times benchmarks, never both at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from formulacode_dagster.operating.cancellation.stopping import stop_request
from formulacode_dagster.operating.store.database import Database

WAIT_SECONDS = 1.0
"""Seconds between two polls of a wait."""
REMEDY = "FC_BUILD_CGROUP gives builds of images cores of their own"

Turn = Callable[[], AbstractContextManager[None]]
"""Excludes disturbances for the length of a block; waits before as long as needed."""


@dataclass(frozen=True)
class Machine:
    """The machine of the image store *store*, as all runs over *database* use it.

    Several builds run in parallel, and so do several timings. A waiting timing is next: later builds wait for it. The
    server releases a turn when its holder dies, `kill -9` included.
    """

    database: Database
    store: str
    has_build_cores: bool = False
    """Image builds have dedicated cores: they wait for no process, and none waits for them."""
    note: Callable[[str], None] | None = None
    """Called once for each wait."""
    wait_seconds: float = WAIT_SECONDS

    def core(self, number: int) -> AbstractContextManager[bool]:
        """Lease core *number*, counted from the last, unless another run has it; return True on success."""
        return self.database.lease(f"core {number} of {self.store}")

    @contextmanager
    def timing(self) -> Iterator[None]:
        """Time something in the block, in parallel with no build and no test. Raises OutsideSystemError when Postgres
        is gone.
        """
        # held while it waits, so that builds do not begin one after the other before it
        with self.database.share(self._timing) as is_held:
            if is_held(self._building):
                self._tell("waits until nothing is built or tested on this machine")
                while is_held(self._building):
                    self._wait()
            yield

    def building(self) -> AbstractContextManager[None]:
        """Build an image in the block, while nothing is timed; raises as `working`."""
        return nullcontext() if self.has_build_cores else self.working()

    @contextmanager
    def working(self) -> Iterator[None]:
        """Build or test in sessions in the block, while nothing is timed: these have no cores of their own.

        Raises OutsideSystemError when Postgres is gone.
        """
        is_told = False
        while True:
            # released between two polls: a timing waits for every holder
            with self.database.share(self._building) as is_held:
                if not is_held(self._timing):
                    yield
                    return
            if not is_told:
                self._tell("waits until nothing is timed on this machine")
                is_told = True
            self._wait()

    @property
    def _timing(self) -> str:
        return f"timing on {self.store}"

    @property
    def _building(self) -> str:
        return f"building on {self.store}"

    def _tell(self, what: str) -> None:
        if self.note is not None:
            self.note(what if self.has_build_cores else f"{what}; {REMEDY}")

    def _wait(self) -> None:
        stop_request().sleep(self.wait_seconds)
