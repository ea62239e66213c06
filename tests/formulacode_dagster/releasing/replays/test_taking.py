"""Results of `./replay`, taken into the database: each once, and only of tasks that the release has."""

from __future__ import annotations

import hashlib
import json
import random
from typing import Any

import pytest

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.store.measurements import replays_of
from formulacode_dagster.releasing.replays.packed import ReplayResults
from formulacode_dagster.releasing.replays.taking import read_results, take
from tests.records import MONTH

MACHINE = {"model": "Another CPU", "vendor": "GenuineIntel", "family": "6", "cores": 16, "kernel": "6.1"}


def surveyed(**fields: object) -> dict[str, object]:
    named = {"name": "bench.a", "module": "bench", "owner": "", "attribute": "a", "index": 0}
    return {**named, "timeout": 60.0, "cache_folder": "", "outcome": "ran", "seconds": 0.01, **fields}


@pytest.fixture
def results(task):
    """Makes the results of one replay of `a__b-1`, with changes: the oracle takes *ratio* of the base's time."""

    def make(ratio: float = 0.5, *, rounds: int = 24, **changes: Any) -> ReplayResults:
        procedure = task().procedure()
        noise = random.Random(7)  # noqa: S311 - noise
        samples = [
            {
                "arm": arm,
                "round": number,
                "order": order,
                "process": 3 * number + order,
                "value": share * noise.uniform(0.99, 1.01),
                "calls": 1,
            }
            for number in range(rounds)
            for order, (arm, share) in enumerate({"base": 1.0, "oracle": ratio, "control": 1.0}.items())
        ]
        returned = {"bench.a": {"type": "int", "types": ["int"], "form": "1"}}
        replay = {
            "id": "0123456789abcdef",
            "task_id": "a__b-1",
            "image": "sha256:manifest",
            "image_id": procedure.image_digest,
            "procedure_sha256": hashlib.sha256(task().procedure_json.encode()).hexdigest(),
            "patch_sha256": procedure.patch_sha256,
            "harness_sha256": procedure.harness_sha256,
            "seed": 1,
            "entered_by": "namespaces",
            "started": "2026-04-01T00:00:00Z",
            "ended": "2026-04-01T00:10:00Z",
            "outcome": "measured",
            "machine": "Another CPU, 16 cores, x86_64",
            "rounds": rounds,
            "surveys": {arm: {"bench.a": surveyed()} for arm in ("base", "oracle", "control")},
            "samples": {"bench.a": samples},
            "returned": dict.fromkeys(("base", "oracle", "control", "again"), returned),
        }
        document = {
            "version": 1,
            "archive_sha256": "0" * 64,
            "release": "formulacode@2026-03",
            "month": MONTH,
            "machine": {**MACHINE, "architecture": "x86_64"},
            "replays": [{**replay, **changes}],
        }
        return ReplayResults.model_validate(document)

    return make


@pytest.fixture
def taken(database, task):
    """Takes results, and returns what became of them with the stored replays of the task."""

    def taken(results: ReplayResults):
        with database.transaction() as connection:
            mine = task(speedup=4.0, instructions_ratio=2.5)
            takings = take(connection, results, [mine], release="formulacode@2026-03", destination="hub:acme/tasks")
            return takings, replays_of(connection, MONTH).get("a__b-1", [])

    return taken


@pytest.mark.parametrize(("ratio", "verdict"), [(0.5, "confirmed"), (1.0, "not_confirmed")])
def test_samples_are_judged_by_the_rule_of_the_row(taken, results, ratio: float, verdict: str) -> None:
    takings, (replay,) = taken(results(ratio))
    assert (replay.verdict, replay.run_id, replay.entered_by) == (verdict, "0123456789abcdef", "namespaces")
    assert replay.is_same_harness
    assert (replay.packed_on.model, replay.packed_on.kernel, replay.packed_on.cores) == ("Another CPU", "6.1", 16)
    assert [each.run_id for each in takings.taken] == [replay.run_id]


def test_figures_are_stored_next_to_those_of_the_row(taken, results) -> None:
    counts = {"base": 250, "oracle": 100}
    _, (replay,) = taken(results(0.5, instructions={"bench.a": counts, "bench.unknown": {"base": 7, "oracle": 1}}))
    note = replay.note
    assert (note.instructions_ratio, note.released_instructions_ratio) == (2.5, 2.5)
    assert (note.speedup, note.released_speedup) == (pytest.approx(2.0, rel=0.1), 4.0)


def test_rounds_after_the_analysis_that_decides_are_not_looked_at(taken, results) -> None:
    _, (replay,) = taken(results(0.5))
    measured = replay.measurement
    # as if it had stopped there: the first look may claim nothing
    assert (measured.look, measured.rounds) == (1, 8)
    assert {sample.round for sample in measured.results[0].samples} == set(range(8))


def test_a_replay_whose_time_ended_is_judged_by_its_rounds_and_says_so(taken, results) -> None:
    _, (replay,) = taken(results(0.9, rounds=3, cut_short="a round took 900 s"))
    assert (replay.measurement.verdict, replay.measurement.rounds) == ("inconclusive", 3)
    assert "a round took 900 s" in replay.measurement.needs


def test_a_replay_is_taken_once(taken, results) -> None:
    taken(results())
    takings, stored = taken(results())
    assert (takings.taken, takings.known, len(stored)) == ([], ["a__b-1"], 1)


def test_a_benchmark_that_returns_something_else_confirms_nothing(taken, results) -> None:
    other = {"bench.a": {"type": "int", "types": ["int"], "form": "2"}}
    same = results().replays[0].model_dump(mode="json")["returned"]["base"]
    _, (replay,) = taken(results(returned={"base": same, "control": same, "oracle": other, "again": other}))
    assert (replay.verdict, replay.measurement.returning_other) == ("not_confirmed", ("bench.a",))


def test_a_task_that_could_not_be_run_there_is_kept_with_its_reason(taken, results) -> None:
    _, (replay,) = taken(results(outcome="workload_differs", message="bench.a: timeout on the base"))
    assert (replay.verdict, replay.failure, replay.measurement) == ("could_not_run", "workload_differs", None)
    # it counts against the task there
    assert replay.note.machine.startswith("Another CPU, 16 cores")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"task_id": "a__b-2"}, "a replay of a__b-2 is not taken: formulacode@2026-03 has no such task"),
        ({"patch_sha256": "f" * 64}, "its patch is ffff"),
        ({"procedure_sha256": "f" * 64}, "its procedure is ffff"),
        ({"image_id": "sha256:other"}, "its image is sha256:other"),
        ({"outcome": "well"}, "'well' is no known outcome"),
        ({"samples": {"bench.a": ()}}, "samples of bench.a are missing, or too many"),
        ({"rounds": 1}, "it has 1 rounds of 24"),
        ({"surveys": {}}, "bench.a was not run once on every arm"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_what_is_not_of_the_release_is_refused_by_name(taken, results, changes: dict[str, Any], said: str) -> None:
    takings, stored = taken(results(**changes))
    (why,) = takings.refused.values()
    assert said in why
    assert stored == []


def test_more_rounds_than_the_procedure_has_are_refused_before_they_are_counted(taken, results) -> None:
    made = results()
    (replay,) = made.replays
    # a set of as many rounds would fill the memory
    takings, _ = taken(made.model_copy(update={"replays": (replay.model_copy(update={"rounds": 10**12}),)}))
    (why,) = takings.refused.values()
    assert "it has 1000000000000 rounds of 24" in why


def test_a_file_that_was_changed_is_refused(results) -> None:
    body = results().model_dump_json()
    sealed = {"sha256": hashlib.sha256(body.encode()).hexdigest(), "results": body}
    assert read_results(json.dumps(sealed).encode(), "r.json") == results()
    with pytest.raises(ConfigurationError, match=r"r\.json is not as \./replay wrote it"):
        read_results(json.dumps({**sealed, "results": body.replace("Another", "Better")}).encode(), "r.json")
    with pytest.raises(ConfigurationError, match=r"r\.json holds no results of \./replay"):
        read_results(b"{}", "r.json")
