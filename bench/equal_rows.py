"""Compares the rows of a month shared by two workers with those of a single run: the sample repositories, both ways.

Once `fc-data run` works by itself; once it shares its stages with `fc-data assist`, another process. With --kill, the
helper is killed (SIGKILL) during its measurements, and another replaces it. With --over celery, it is launched into the
queue of deploy/celery instead, with a private Redis, Dagster's daemon and two workers. Then the rows of every artifact
and of the ledger are compared by checksum, without the columns of LEFT_OUT, which hold times and places; for differing
rows the first fields are named. Uses the sandbox and the `process` engine, and the package index. The exit code is 1 if
rows differ, or there was no helper.

python -m bench.equal_rows --month 2026-02 --kill
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from sqlalchemy import Connection, select

from bench.celery_month import run_by_workers
from bench.embedded_server import stop
from formulacode_dagster.models.items import Stage
from formulacode_dagster.operating.runner import claims
from formulacode_dagster.operating.store import artifacts, ledger
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.embedded import start_embedded
from formulacode_dagster.operating.store.tables import CLAIMS
from formulacode_dagster.sources.offline.side_file import SIDE_FILE, SideFile
from sandbox.samples import generate
from sandbox.session import SUITS_SAMPLES, running_sandbox

FC_DATA = Path(sys.executable).with_name("fc-data")
FIRST_PORT = 38_710
"""Both times the sandbox is at the same addresses: some rows name them."""
SHARED = (Stage.ENVIRONMENTS, Stage.IMAGES, Stage.MEASUREMENTS, Stage.PUBLISHED_IMAGES)
LOOK_SECONDS = 0.1
SHARING = {"FC_HELPER_RUNS": "1", "FC_LEASE_SECONDS": "15"}
MOST_TOLD = 6
"""Fields that are named of a table that differs."""
TOLD_CHARACTERS = 120

LEFT_OUT: Mapping[str, str] = {
    "seconds": "a time",
    "build_seconds": "a time",
    "released_at": "a time",
    "conditions": "what else the machine did",
    "store": "the home that holds it",
    "location": "the home that holds it",
    "run_id": "made up by each run",
    "revision": "of the Hub, made of times",
    **dict.fromkeys(("rows_sha256", "read_back_sha256"), "of rows with times"),
    **dict.fromkeys(("samples", "rounds", "look", "needs", "disturbed", "profile", "procedure_sha256"), "of timings"),
    **dict.fromkeys(("speedup", "low", "high", "p_value", "slower_p_value", "faster_p", "slower_p"), "of timings"),
    **dict.fromkeys(("control_speedup", "control_low", "control_high", "faster", "slower"), "of timings"),
}
"""Fields that also differ between two runs of one process, at any place in a row; with the reason."""
COMPARED = (
    *(artifacts.REPOSITORIES, artifacts.MERGED_PULL_REQUESTS, artifacts.CHANGES, artifacts.CLASSIFICATIONS),
    *(artifacts.PROBLEM_STATEMENTS, artifacts.ENVIRONMENTS, artifacts.IMAGES, artifacts.MEASUREMENTS),
    *(artifacts.CORRECTNESS, artifacts.PUBLISHED_IMAGES, artifacts.RELEASES),
)
SECONDS = re.compile(r"\b\d[\d.e-]* s\b")
"""Times in sentences."""
LEDGER_KEPT = {"stage", "item", "state", "reason", "attempt"}


@dataclass(frozen=True)
class Checksum:
    """Content of a table for a month: the number of rows, and the SHA-256 of the compared part."""

    rows: int
    sha256: str


def main() -> None:
    """Run the month both ways, and compare."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--month", default="2026-02", help="one of the two that the samples have: 2026-01, 2026-02")
    parser.add_argument("--repository", nargs="*", default=[], help="some of the samples alone")
    parser.add_argument("--kill", action="store_true", help="kill the helper with SIGKILL while it measures")
    parser.add_argument("--over", choices=("assist", "celery"), default="assist", help="who works on it besides")
    options = parser.parse_args()
    if options.kill and options.over == "celery":
        parser.error("--kill is for --over assist: tests/deploy/test_celery_runs.py kills a worker of Celery")
    with tempfile.TemporaryDirectory(prefix="fc-equal-") as name:
        folder = Path(name)
        repositories = some_samples(folder, options.repository)
        # one path for both: compiled files contain it
        home = Home(folder / "home", repositories, options.month)
        home.run_alone()
        rows = [home.rows()]
        home.remove()
        worked = home.run_over_celery() if options.over == "celery" else home.run_shared(kill=options.kill)
        rows.append(home.rows())
        home.remove()
    checksums = [{name: checksum(kept) for name, kept in home.items()} for home in rows]
    differing = [name for name in checksums[0] if checksums[0][name] != checksums[1][name]]
    for name, expected in checksums[0].items():
        state = "differs" if name in differing else "equal"
        print(f"{name:22} {expected.rows:5} {expected.sha256[:16]}  {checksums[1][name].sha256[:16]}  {state}")
    for name in differing:
        for told in islice(differences(rows[0][name], rows[1][name]), MOST_TOLD):
            print(f"{name} {told}")
    print(f"items of shared stages by run: {', '.join(map(str, worked))}")
    print(
        json.dumps(
            {
                "tables": len(checksums[0]),
                "differing": differing,
                "items_by_run": worked,
                "over": options.over,
                "killed": options.kill,
            }
        )
    )
    sys.exit(1 if differing or len(worked) < 2 else 0)


def some_samples(folder: Path, names: Collection[str]) -> Path:
    """A folder of the sample repositories called *names*, all of them by default."""
    samples = generate(folder / "repositories")
    if not names:
        return samples.folder
    chosen, side = folder / "chosen", SideFile.read(samples.folder)
    for name in names:
        link = chosen / f"{name}.git"
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(samples.repository(name))
    kept = SideFile(repositories={name: side.repositories[name] for name in names})
    (chosen / SIDE_FILE).write_text(kept.model_dump_json(exclude_defaults=True))
    return chosen


@dataclass(frozen=True)
class Home:
    """A separate platform, in which the month is run once."""

    path: Path
    repositories: Path
    month: str

    def run_alone(self) -> None:
        """As on one machine."""
        with self._settings() as settings, self._program(settings, "run", "--month", self.month) as leader:
            _require_success(leader)

    def run_shared(self, *, kill: bool) -> list[int]:
        """With a helper; return the number of items of the shared stages by run, most first."""
        self._make_database()
        with self._settings(**SHARING) as settings:
            with self._program(settings, "run", "--month", self.month) as leader:
                with self._program(settings, "assist") as helper:
                    if kill:
                        self._wait_until_it_measures(leader)
                        os.killpg(helper.pid, signal.SIGKILL)
                        helper.wait()
                    else:
                        leader.wait()
                if kill:
                    with self._program(settings, "assist"):
                        leader.wait()
            _require_success(leader)
        return self._worked()

    def run_over_celery(self) -> list[int]:
        """By two workers of Celery; returns as `run_shared`."""
        url = self._make_database()
        with self._settings(**SHARING) as settings:
            run_by_workers(self.path / "celery", self.month, settings, url)
        return self._worked()

    def _make_database(self) -> str:
        """The URL of a database in which whoever looks for claims finds the table."""
        url = start_embedded(self.path / "postgres")
        database = Database(url)
        database.migrate()
        database.close()
        return url

    def _worked(self) -> list[int]:
        with self._transaction() as connection:
            entries = ledger.entries_of(connection, self.month)
        return [count for _, count in Counter(it.run_id for it in entries if it.stage in SHARED).most_common()]

    def rows(self) -> dict[str, list[object]]:
        """The compared part of every artifact's rows, and of the ledger's outcomes, by table."""
        with self._transaction() as connection:
            compared = {
                artifact.table.name: [
                    without(row.model_dump(mode="json")) for row in artifact.read(connection, self.month)
                ]
                for artifact in COMPARED
            }
            entries = ledger.entries_of(connection, self.month)
        return compared | {"ledger": [without(entry.model_dump(mode="json", include=LEDGER_KEPT)) for entry in entries]}

    def remove(self) -> None:
        """Leave nothing of the run."""
        stop(self.path)
        shutil.rmtree(self.path)

    def _wait_until_it_measures(self, leader: subprocess.Popen[bytes]) -> None:
        pause = threading.Event()
        while leader.poll() is None:
            with self._transaction() as connection:
                stage = claims.shared_stage(connection, Stage.MEASUREMENTS, self.month)
                at_work = select(CLAIMS.c.claimed_by).where(CLAIMS.c.stage == Stage.MEASUREMENTS.value)
                holders = {name.partition(" ")[0] for name in connection.execute(at_work).scalars()} - {""}
            if stage is not None and holders - {stage.run_id}:
                return
            pause.wait(LOOK_SECONDS)
        raise RuntimeError("the month was over before the helper measured anything")

    @contextmanager
    def _settings(self, **more: str) -> Iterator[dict[str, str]]:
        with running_sandbox(self.repositories, self.path / "sandbox-state", first_port=FIRST_PORT) as sandbox:
            settings = {"FC_HOME": str(self.path), "FC_ENGINE": "process", "FC_RETRY_SECONDS": "0"}
            # with only some of the samples, many fail
            settings["FC_FAILURE_BUDGET"] = "0.9"
            yield {**os.environ, **sandbox.environment, **SUITS_SAMPLES, **settings, **more}

    @contextmanager
    def _program(self, settings: Mapping[str, str], *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
        """`fc-data` in a separate session, ended with all its children."""
        log = self.path / f"{arguments[0]}-{time.monotonic_ns()}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            command = [str(FC_DATA), *arguments]
            process = subprocess.Popen(
                command, env=settings, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                yield process
            finally:
                process.terminate()
                process.wait()
                if process.returncode:
                    print(f"{' '.join(arguments)}: status {process.returncode}", file=sys.stderr)
                    print(log.read_text(errors="replace")[-3000:], file=sys.stderr)

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        database = Database(start_embedded(self.path / "postgres"))
        try:
            with database.transaction() as connection:
                yield connection
        finally:
            database.close()


def checksum(rows: Sequence[object]) -> Checksum:
    """Checksum of *rows* in their order."""
    whole = hashlib.sha256()
    for row in rows:
        whole.update(json.dumps(row, sort_keys=True).encode() + b"\n")
    return Checksum(len(rows), whole.hexdigest())


def differences(one: object, other: object, place: str = "") -> Iterator[str]:
    """Paths at which two JSON values differ, with both values."""
    if isinstance(one, Mapping) and isinstance(other, Mapping) and one.keys() == other.keys():
        for name in one:
            yield from differences(one[name], other[name], f"{place}.{name}".lstrip("."))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            # a row contains its own key
            name = left.get("tag") or left.get("number", number) if isinstance(left, Mapping) else number
            yield from differences(left, right, f"{place}[{name}]")
    elif one != other:
        yield f"{place}: {str(one)[:TOLD_CHARACTERS]!r}, {str(other)[:TOLD_CHARACTERS]!r}"


def without(value: object) -> object:
    """*value* without the fields that are LEFT_OUT, and without times in sentences, at any depth."""
    if isinstance(value, Mapping):
        return {name: without(part) for name, part in value.items() if name not in LEFT_OUT}
    if isinstance(value, (list, tuple)):
        return [without(part) for part in value]
    return SECONDS.sub("_ s", value) if isinstance(value, str) else value


def _require_success(process: subprocess.Popen[bytes]) -> None:
    if process.wait():
        raise RuntimeError("the month failed: its log is above")


if __name__ == "__main__":
    main()
