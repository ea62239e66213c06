"""Base, oracle and control of one task, each in a place of its own, built as by the platform's `measurement.arms`."""

from __future__ import annotations

import os
import secrets
from typing import TYPE_CHECKING, Any

from .harness_requests import PackedHarness, TaskFailedError, random_hash_seed
from .sessions import REPOSITORY, EndedCommand, SessionMachine, SessionPlace

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

BASE, ORACLE, CONTROL = "base", "oracle", "control"
ARMS = (BASE, ORACLE, CONTROL)
"""In the platform's order."""
ALIGNMENT, CODE_STEPS, DATA_STEPS = 16, 1024, 64
APPLY_SECONDS = 120.0
LOG_CHARACTERS = 4000


class PackedArms:
    """The arms of *task*, in folders below *folder*."""

    def __init__(
        self, machine: SessionMachine, task: dict[str, Any], folder: str, note: Callable[[str], object]
    ) -> None:
        self._machine, self._task, self._folder, self._note = machine, task, folder, note
        self.by_name: dict[str, PackedHarness] = {}
        self._linkers: dict[str, str] = {}
        self._linkers_name = f"fc-linkers-{secrets.token_hex(4)}"
        self.built_seconds = 0.0

    def prepare(self, patch: bytes) -> None:
        """Open each arm at its code, built, and lay the suite over it; raises TaskFailedError."""
        self._open(BASE)
        self._build_first(BASE)
        for arm in (ORACLE, CONTROL):
            self._open(arm, like=self.by_name[BASE].place)
        self._note("applying the author's patch")
        self._apply(patch)
        self._build_first(ORACLE)
        if not self._task["control_is_copy"]:
            self._build_first(CONTROL)
        for harness in self.by_name.values():
            harness.lay_suite()

    def build_anew(self, arm: str, generator: random.Random) -> dict[str, str]:
        """Give *arm* a random layout: linked again if that reproduces its objects, else built again."""
        code, data = ALIGNMENT * generator.randrange(CODE_STEPS), ALIGNMENT * generator.randrange(DATA_STEPS)
        harness = self.by_name[arm]
        if (linkers := self._linkers.get(arm)) and (kept := harness.relink(linkers, code, data)):
            return kept
        self._linkers[arm] = harness.linkers(code, data, self._linkers_name)
        self._rebuild(arm)
        return harness.keep_build()

    def returned(self, seconds: float) -> dict[str, dict[str, Any]]:
        """Values that each benchmark returns in two calls a side; the first calls share a hash seed, and so do the
        others.
        """
        self._note("comparing what benchmarks return")
        values: dict[str, dict[str, Any]] = {}
        for names in ({"base": BASE, "oracle": ORACLE}, {"control": CONTROL, "again": ORACLE}):
            hash_seed = random_hash_seed()
            for name, arm in names.items():
                answers = self.by_name[arm].survey(self._task["benchmarks"], seconds, results=True, hash_seed=hash_seed)
                values[name] = {benchmark: answer.get("returned") for benchmark, answer in answers.items()}
        return values

    def count(
        self, surveys: dict[str, dict[str, dict[str, Any]]], counting: dict[str, Any], seconds: float
    ) -> dict[str, dict[str, Any]]:
        """Instructions of a call of each benchmark at the base and with the patch, in *seconds* for either."""
        self._note(f"counting instructions, {2 * seconds:.0f} s at most")
        told = {arm: self.by_name[arm].count(list(surveys[arm].values()), counting, seconds) for arm in (BASE, ORACLE)}
        return {
            name: {
                **{arm: counts[name] for arm, counts in told.items() if isinstance(counts[name], int)},
                "not_counted": "; ".join(
                    f"{counts[name]} on the {arm}" for arm, counts in told.items() if isinstance(counts[name], str)
                ),
            }
            for name in surveys[BASE]
        }

    def close(self) -> None:
        """Remove all places."""
        for harness in self.by_name.values():
            harness.place.close()

    def _open(self, arm: str, like: SessionPlace | None = None) -> None:
        self.by_name[arm] = PackedHarness(
            SessionPlace(self._machine, os.path.join(self._folder, arm), like), self._task
        )

    def _apply(self, patch: bytes) -> None:
        done = self.by_name[ORACLE].place.run(
            ["git", "-c", "safe.directory=*", "apply", "--whitespace=nowarn", "-"],
            timeout=APPLY_SECONDS,
            cwd=REPOSITORY,
            environment={"GIT_CEILING_DIRECTORIES": os.path.dirname(REPOSITORY)},
            stdin=patch,
        )
        if not done.ok:
            why = "the author's patch does not apply to the image's checkout"
            raise TaskFailedError("oracle_does_not_apply", why, done.describe())

    def _build_first(self, arm: str) -> None:
        if self._task["is_linked"]:
            self._linkers[arm] = self.by_name[arm].linkers(0, 0, self._linkers_name)
        self._note(f"rebuilding the {arm}")
        self._rebuild(arm)

    def _rebuild(self, arm: str) -> None:
        """Build an arm; a failure is retried once, and the patch is at fault only if the base builds."""
        done = self._tried(arm)
        if not done.ok and not done.timed_out and arm == ORACLE and self._build(BASE).ok:
            raise _not_built("oracle_does_not_build", "with the author's patch the package", done)
        if not done.ok:
            raise _not_built("base_does_not_build", "the unmodified package", done)

    def _tried(self, arm: str) -> EndedCommand:
        done = self._build(arm)
        return done if done.ok or done.timed_out else self._build(arm)

    def _build(self, arm: str) -> EndedCommand:
        done = self.by_name[arm].build(self._linkers.get(arm, ""))
        self.built_seconds += done.seconds
        return done


def _not_built(kind: str, what: str, done: EndedCommand) -> TaskFailedError:
    log = f"{done.stdout[-LOG_CHARACTERS:].decode(errors='replace')}\n{done.describe()}"
    if done.timed_out:
        return TaskFailedError("timeout", f"{what} takes too long to build", log)
    return TaskFailedError(kind, f"{what} does not build", log)
