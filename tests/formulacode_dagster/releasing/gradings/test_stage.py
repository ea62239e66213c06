"""The stage `gradings` over a month with one published task, with reports as a grader gives them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure
from formulacode_dagster.models.grading import CHEATS, GradingProbe, TaskGrading
from formulacode_dagster.models.items import ItemState, LedgerEntry, RunOptions, Stage
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.release import PublishedImage
from formulacode_dagster.operating.cancellation.loops import run_loop
from formulacode_dagster.operating.runner.progress import ProgressListener, listening
from formulacode_dagster.operating.runner.work import StageRun
from formulacode_dagster.operating.store import artifacts, ledger
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.measurements import newest_gradings
from formulacode_dagster.releasing.dataset.gate import release_gate
from formulacode_dagster.releasing.dataset.records import month_records
from formulacode_dagster.releasing.exports.grader.terminal_reports import BREAKS_GRADER
from formulacode_dagster.releasing.gradings import checks
from formulacode_dagster.releasing.gradings.stage import GradingTools, run, tries_of
from tests.formulacode_dagster.releasing.conftest import MANIFEST, MONTH
from tests.support.month import enter

ITEM = "Acme/Fast.py#7"
BREAKS_OFF, SCRIPT_FAILS, BREAKS = -1.0, -2.0, -3.0
HONEST = {"oracle": [1.0, 0.95, 0.97]}
Rewards = Mapping[str, list[float]]


class Registry:
    """Records what is pulled."""

    def __init__(self) -> None:
        self.pulled_digests: list[str] = []

    @contextmanager
    def pulled(self, reference: str, digest: str) -> Iterator[str]:
        """As `ImagePuller.pulled`."""
        self.pulled_digests.append(digest)
        yield "sha256:here"


Grade = Callable[..., LedgerEntry]


@pytest.fixture
def grade(month: Database, published: PublishedImage) -> Grade:
    """`grade(rewards)`: the entry of the task, whose probes get these rewards one after the other, else 0."""
    with month.transaction() as connection:
        artifacts.PUBLISHED_IMAGES.save(connection, [published])
    enter(month, Stage.PUBLISHED_IMAGES, ITEM)

    def run_once(rewards: Rewards = HONEST, *, seconds: float = 60, tries: int = 3, **options: Any) -> LedgerEntry:
        left = {probe: list(values) for probe, values in rewards.items()}
        grade.asked = []

        def evaluate(folder: Path, agent: str) -> dict[str, Any]:
            assert (folder / "tests" / "grader.pyz").is_file()
            name = Path(agent).stem
            grade.asked.append(name)
            values = left.get(name) or [0.0]
            if values[0] == BREAKS_OFF:
                raise ItemFailure(FailureKind.INCOMPLETE, "the grader broke off")
            if values[0] == SCRIPT_FAILS:
                raise ConfigurationError("the agent ended with status 1")
            if values[0] == BREAKS:
                return {"metrics": {"reward": 0.0}, "reason": BREAKS_GRADER, "detail": "KeyError: 'a'"}
            reason = "faster" if values[0] else "unchanged"
            return {"metrics": {"reward": values.pop(0), "cpu_seconds": 2.0}, "reason": reason, "detail": "seen"}

        tools = GradingTools(Registry(), seconds, tries, evaluate=evaluate)
        stage = StageRun(month, Stage.GRADINGS, MONTH, options.pop("run_id", "run"), RunOptions(**options))
        run_loop(run(stage, tools))
        with month.transaction() as connection:
            (entry,) = ledger.entries_of(connection, MONTH, Stage.GRADINGS)
        return entry

    grade: Any = run_once
    return run_once


def newest(database: Database) -> TaskGrading:
    with database.transaction() as connection:
        (grading,) = newest_gradings(connection, MONTH).values()
    return grading


def test_a_task_is_gradable_if_only_the_authors_patch_gets_a_reward(month: Database, grade: Any) -> None:
    entry = grade()
    assert (entry.state, entry.detail) == (ItemState.DONE, "author 0.97, none of 6 probes gets anything")
    # the second try of the author decides the median
    assert grade.asked == ["oracle", "oracle", *CHEATS]
    grading = newest(month)
    assert (grading.is_gradable, grading.image_digest, grading.attempt) == (True, MANIFEST, 1)
    with month.transaction() as connection:
        (record,) = month_records(connection, MONTH).values()
    assert record.row.probes is not None
    assert '{"probe": "nop", "reward": 0.0, "reason": "unchanged"}' in record.row.probes


@pytest.mark.parametrize(
    ("rewards", "detail"),
    [
        ({**HONEST, "cache": [0.4]}, "cache gets 0.40 (faster)"),
        ({"oracle": [0.95, 0.2, 0.3]}, "the author's patch gets 0.30 in 3 tries: faster seen"),
        ({"oracle": [0.0, 0.0]}, "the author's patch gets 0.00 in 2 tries: unchanged seen"),
    ],
    ids=["cheat", "unsteady", "unpaid"],
)
def test_a_task_with_a_wrong_reward_is_not_released(month: Database, grade: Any, rewards: Rewards, detail: str) -> None:
    entry = grade(rewards)
    assert (entry.state, entry.reason, entry.detail) == (ItemState.REJECTED, "not_gradable", detail)
    with month.transaction() as connection:
        assert month_records(connection, MONTH) == {}
        gate = release_gate(connection, MONTH, [])
    assert (gate.graded, gate.gradable, gate.not_gradable) == (1, 0, {ITEM: detail})


def test_a_gate_has_one_short_line_of_a_failure(month: Database) -> None:
    detail = f"it failed:\n# {'x' * 400}"
    failed = LedgerEntry(stage=Stage.GRADINGS, month=MONTH, item=ITEM, state=ItemState.FAILED, detail=detail)
    with month.transaction() as connection:
        ledger.record(connection, [failed])
        gate = release_gate(connection, MONTH, [])
    assert gate.not_gradable == {ITEM: f"it failed: # {'x' * 286}…"}


def test_a_grading_says_what_each_probe_came_to(grade: Any) -> None:
    notes: list[str] = []

    class Notes(ProgressListener):
        def note(self, stage: Stage, text: str) -> None:
            assert stage is Stage.GRADINGS
            notes.append(text)

    with listening(Notes()):
        grade()
    assert notes[:3] == [
        f"{ITEM}: probe oracle, try 1 of 3",
        f"{ITEM}: probe oracle, try 1 of 3: faster (seen), reward 1.00, in 0 s",
        f"{ITEM}: probe oracle, try 2 of 3",
    ]
    assert notes[-1] == f"{ITEM}: probe {CHEATS[-1]}: unchanged (seen), reward 0.00, in 0 s"


def test_probes_of_an_unpaid_author_are_not_graded(grade: Any) -> None:
    grade({"oracle": [0.0, 0.0]})
    assert grade.asked == ["oracle", "oracle"]


def test_probes_are_graded_where_the_median_of_an_even_number_of_tries_is_paid(grade: Any) -> None:
    entry = grade({"oracle": [1.0, 0.85], "cache": [0.4]}, tries=2)
    assert grade.asked == ["oracle", "oracle", *CHEATS]
    assert (entry.state, entry.detail) == (ItemState.REJECTED, "cache gets 0.40 (faster)")
    grade({"oracle": [1.0, 0.75]}, tries=2, force=True)
    assert grade.asked == ["oracle", "oracle"]


@pytest.mark.parametrize("ends", [BREAKS_OFF, BREAKS])
def test_a_grader_that_breaks_off_fails_the_item_and_the_next_run_grades_it_again(
    month: Database, grade: Any, ends: float
) -> None:
    entry = grade({**HONEST, "lazy": [ends]})
    assert (entry.state, entry.reason) == (ItemState.FAILED, "incomplete")
    with month.transaction() as connection:
        assert month_records(connection, MONTH) == {}
    assert grade().state is ItemState.DONE


def test_a_probe_whose_script_fails_costs_its_task_and_not_the_month(month: Database, grade: Any) -> None:
    entry = grade({**HONEST, "cache": [SCRIPT_FAILS]})
    assert (entry.state, entry.reason) == (ItemState.FAILED, "probe_not_made")
    assert "the probe cache" in entry.detail
    with month.transaction() as connection:
        assert month_records(connection, MONTH) == {}


def test_an_unchanged_task_is_graded_once_and_forced_gradings_are_added(month: Database, grade: Any) -> None:
    grade()
    grade()
    assert grade.asked == []
    grade({**HONEST, "cache": [0.4]}, force=True, run_id="another")
    assert (newest(month).attempt, newest(month).is_gradable) == (2, False)
    with month.transaction() as connection:
        assert len(artifacts.GRADINGS.read(connection, MONTH)) == 2


def test_a_task_is_graded_again_by_another_version_of_the_grader(grade: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    warned: list[str] = []
    monkeypatch.setattr(StageRun, "warn", lambda _stage, text: warned.append(text))
    grade()
    monkeypatch.setattr(f"{run.__module__}.grader_sha256", lambda: "0" * 64)
    grade()
    assert grade.asked[:2] == ["oracle", "oracle"]
    assert warned == ["1 of 1 tasks have gradings by another version of the grader: graded again"]


def test_no_further_probe_starts_when_the_time_is_up(month: Database, grade: Any) -> None:
    assert grade(seconds=1e-9).state is ItemState.DONE
    assert grade.asked == ["oracle", "oracle"]
    assert newest(month).unfinished == CHEATS


@pytest.mark.parametrize(("seconds", "reason"), [(0, "not_graded"), (60, "not_published")])
def test_what_cannot_be_graded_is_released_without_probes(
    month: Database, grade: Any, seconds: float, reason: str
) -> None:
    if seconds:
        enter(month, Stage.PUBLISHED_IMAGES, ITEM, ItemState.SKIPPED, reason="no_registry")
    entry = grade(seconds=seconds)
    assert (entry.state, entry.reason) == (ItemState.SKIPPED, reason)
    with month.transaction() as connection:
        (record,) = month_records(connection, MONTH).values()
        gate = release_gate(connection, MONTH, [ITEM])
    assert (record.row.probes, gate.not_graded) == (None, {reason: 1})


def test_the_check_fires_on_rewards_missing_gradings_and_other_images(
    month: Database, grade: Any, published: PublishedImage, pull_request: PullRequest
) -> None:
    key = pull_request.key
    grade()
    good = newest(month)
    assert checks.probes_get_nothing({key: good}, [key], [published]).passed
    bad = good.model_copy(
        update={"results": (*good.results, good.results[-1].model_copy(update={"reward": 0.5, "reason": "faster"}))}
    )
    for gradings, gradable, wanted in (
        ({key: bad}, [key], "reformat gets 0.50 (faster)"),
        ({}, [key], "was never graded"),
        ({key: good.model_copy(update={"image_digest": "sha256:other"})}, [key], "was graded from sha256:other"),
        ({key: bad}, [], "none of 1 graded tasks is gradable"),
    ):
        finding = checks.probes_get_nothing(gradings, gradable, [published])
        assert not finding.passed
        assert wanted in finding.summary
    assert checks.probes_get_nothing({}, [], []).passed


@pytest.mark.parametrize(
    ("rewards", "taken"), [([1, 1, 0], 2), ([0, 0, 1], 2), ([1, 0, 1], 3)], ids=["enough", "missed", "undecided"]
)
def test_the_author_is_graded_until_the_median_is_decided(grade: Any, rewards: list[float], taken: int) -> None:
    grade({"oracle": list(rewards)})
    assert grade.asked.count(GradingProbe.ORACLE) == taken
    assert list(tries_of(lambda: pytest.fail("graded"), 0)) == []
