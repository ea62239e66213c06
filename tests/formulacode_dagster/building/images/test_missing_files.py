"""Images of a repository whose mirror lacks contents: nothing is built until they are there, and then it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from formulacode_dagster.building.engines.image_store import TrimmedCache
from formulacode_dagster.building.engines.process.image_store import ProcessImageStore
from formulacode_dagster.building.images.stage import ImageTools, run
from formulacode_dagster.models.errors import OutsideSystemError, SuspectedOutage
from formulacode_dagster.models.items import ItemState, LedgerEntry, RunOptions, Stage
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.runner.work import StageRun
from formulacode_dagster.operating.store import artifacts, ledger
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.pull_requests import save_changes
from formulacode_dagster.sources.git.mirror import MirrorCache
from tests.formulacode_dagster.building.images.repairs.failing import FailingEngine, make_environment
from tests.records import MONTH, make_merged, make_pull_request
from tests.support.git_world import BareRepository, lose_object


class Engine(FailingEngine):
    def clean(self) -> None:
        """Nothing is left over."""

    def interpreters(self) -> frozenset[str]:
        return frozenset({"3.12"})


class Store(ProcessImageStore):
    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.trimmed: list[int | None] = []

    def trim_cache(self, budget: int | None, *, dry_run: bool) -> TrimmedCache:
        assert not dry_run
        self.trimmed.append(budget)
        return super().trim_cache(budget, dry_run=dry_run)


def test_files_missing_from_the_mirror_are_found_before_a_build_and_the_next_run_builds(
    database: Database, tmp_path: Path
) -> None:
    made = BareRepository(tmp_path / "host/a/b.git")
    made.add("Begin", "2026-01-01T00:00:00", files={"asv.conf.json": "{}", "docs/index.rst": "A page"})
    made.add("Faster (#1)", "2026-02-03T00:00:00")
    shas = made.write()
    pr = make_pull_request(make_merged(month=MONTH, number=1, merge_commit_sha=shas[2]), base_sha=shas[1])
    month, repository, number = pr.facts.month, pr.facts.repository_id, pr.facts.number
    key = {"month": month, "repository_id": repository, "number": number}
    with database.transaction() as connection:
        artifacts.MERGED_PULL_REQUESTS.save(connection, [pr.facts])
        save_changes(connection, [(pr.change, b"diff\n")])
        artifacts.ENVIRONMENTS.save(connection, [make_environment().model_copy(update=key)])
        done = LedgerEntry(stage=Stage.ENVIRONMENTS, month=month, item=pr.item, state=ItemState.DONE)
        ledger.record(connection, [done])

    def fill_the_disk() -> None:
        raise OutsideSystemError("disk", "env tier: no space left")

    def report_a_full_disk() -> None:
        raise SuspectedOutage("disk", FailureKind.NO_SPACE, "env tier: no space left, as its log says")

    engine: Any = Engine(fill_the_disk, "the build was started", report_a_full_disk)
    resolver: Any = None
    mirrors, store = MirrorCache(tmp_path / "mirrors", (tmp_path / "host").as_uri()), Store(tmp_path / "builds")
    tools = ImageTools(engine, mirrors, resolver, "os:{python}", store, 7)

    def built(options: RunOptions = RunOptions()) -> LedgerEntry:
        stage = StageRun(database, Stage.IMAGES, month, "run", options)
        (entry,) = run_loop(run(stage, tools)).worked
        return entry

    content = made.git("cat-file", "blob", f"{shas[1]}:docs/index.rst").encode()
    lose_object(made.path, made.git("rev-parse", f"{shas[1]}:docs/index.rst"))
    for _ in range(4):
        failed = built()
        assert failed.reason == FailureKind.FILES_MISSING
        assert "1 file is missing" in failed.detail
        assert f"git -C {made.path} fetch --refetch" in failed.detail
        assert (engine.built, store.trimmed) == ([], [])
    made.git("hash-object", "-w", "--stdin", stdin=content)
    with pytest.raises(OutsideSystemError, match="no space left"):
        built()
    assert store.trimmed == [0], "all of the cache goes where the disk is full"
    assert built().reason == FailureKind.BUILD
    assert engine.built
    assert store.trimmed == [0, 7], "a build that fails leaves its cache, too"
    assert built(RunOptions(force=True)).reason == FailureKind.NO_SPACE, "by itself, it is the item's failure"
    assert store.trimmed == [0, 7, 0]
