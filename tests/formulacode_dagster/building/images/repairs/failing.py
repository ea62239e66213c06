"""An engine with scripted build failures, and a task for it. As a script, it is killed in its second build:

python failing.py URL
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from formulacode_dagster.building.engines.failures import BuildFailure
from formulacode_dagster.building.images.repairs.attempts import Task
from formulacode_dagster.building.images.repairs.loop import build_until_it_holds
from formulacode_dagster.models.attempt import BuildAttempt
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.image import BuildSpec, EngineName
from formulacode_dagster.models.recipe import Fix
from formulacode_dagster.operating.store.attempts import save_attempt
from formulacode_dagster.operating.store.database import Database
from tests.records import make_merged, make_pull_request

MOMENT = datetime(2026, 2, 3, tzinfo=UTC)
NO_GSL = "fatal error: gsl/gsl_math.h: No such file or directory"
NO_FFI = "fatal error: ffi.h: No such file or directory"


class FailingEngine:
    """Every build ends with the next of *ends*: a log, or something to do. It fills `built`."""

    name = EngineName.DOCKER

    def __init__(self, *ends: str | Callable[[], None], kind: str = "build") -> None:
        self._ends = list(ends)
        self._kind = kind
        self.built: list[BuildSpec] = []

    def build(self, spec: BuildSpec, origins: object, **_: Any) -> None:
        """Fail."""
        self.built.append(spec)
        end = self._ends.pop(0) if len(self._ends) > 1 else self._ends[0]
        if not isinstance(end, str):
            end()
            return
        raise BuildFailure(self._kind, "task tier failed", log=end, stage="task", rc=2, why=end)


class NoRepository:
    """A mirror without a single file."""

    path = Path("/nonexistent")

    def read(self, commit: str, path: str) -> bytes | None:
        """Nothing."""

    def list(self, commit: str, folder: str = "") -> list[str]:
        """No file."""
        return []

    def later(self, commit: str, *patterns: str) -> tuple[str, ...]:
        """No commit."""
        return ()


def make_environment(fixes: Sequence[Fix] = ()) -> Environment:
    """An environment that steps down as *fixes* say."""
    candidates = ("3.12", "3.11", "3.10", "3.9")
    return Environment(
        month="2026-02",
        repository_id=7,
        number=5,
        python=candidates[sum(fix.step_down for fix in fixes)],
        python_reason="",
        python_candidates=candidates,
        package_root=".",
        config_path="asv.conf.json",
        benchmark_dir="benchmarks",
        requirements=(),
        fixes=tuple(fixes),
        lock="",
        lock_sha256="0" * 64,
        resolver="uv",
        exclude_newer=MOMENT,
    )


def make_task(replan: Callable[[Sequence[Fix]], Environment] = make_environment) -> Task:
    """A task of a repository without files."""
    facts = make_merged(month="2026-02", repository_id=7, repository="a/b", number=5)
    return Task(
        pr=make_pull_request(facts),
        environment=make_environment(),
        mirror=NoRepository(),  # type: ignore[arg-type]  # nothing else of a repository is asked
        anchor_sha="c" * 40,
        os_image="python:{python}",
        replan=replan,
        submodules=lambda _: {},
    )


def main() -> None:
    """Fail once, keep that, and die in the second build."""
    database = Database(sys.argv[1])

    def keep(attempt: BuildAttempt) -> None:
        with database.transaction() as connection:
            save_attempt(connection, attempt)

    engine = FailingEngine(NO_GSL, lambda: os.kill(os.getpid(), signal.SIGKILL))
    build_until_it_holds(engine, make_task(), run_id="run", keep=keep)  # type: ignore[arg-type]  # only builds


if __name__ == "__main__":
    main()
