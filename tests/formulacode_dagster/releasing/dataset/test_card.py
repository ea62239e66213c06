from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime

import yaml

from formulacode_dagster.models.check import Acceptance
from formulacode_dagster.models.items import Stage
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.release import Correction, TaskRecord
from formulacode_dagster.releasing.dataset.card import render_card
from formulacode_dagster.releasing.dataset.edition import Edition
from formulacode_dagster.releasing.dataset.index import DatasetIndex, facts_of
from formulacode_dagster.releasing.dataset.parquet import DATASET_COLUMNS, table_columns
from formulacode_dagster.releasing.dataset.task_tables import TABLES, Table
from tests.support.release import replay_note, tables_of

FEBRUARY = Month.parse("2026-02")


def _index(record: Callable[..., TaskRecord]) -> DatasetIndex:
    index = DatasetIndex().with_month(facts_of(Edition(FEBRUARY), tables_of([record(1), record(2)])))
    return index.with_month(facts_of(Edition(FEBRUARY.previous()), tables_of([])))


def test_the_card_names_a_config_for_each_month(record: Callable[..., TaskRecord]) -> None:
    head = yaml.safe_load(render_card(_index(record)).split("---")[1])
    assert {config["config_name"]: config["data_files"] for config in head["configs"]} == {
        **{table.value: f"{table.value}/*.parquet" for table in Table},
        "default": "data/*.parquet",
        "verified": "verified/*.parquet",
        "2026-01": "data/2026-01.parquet",
        "2026-02": "data/2026-02.parquet",
    }
    assert head["size_categories"] == ["n<1K"]


def test_the_config_of_reviewed_tasks_is_there_once_there_are_some(record: Callable[..., TaskRecord]) -> None:
    approved = tables_of([record(1, reviews='[{"verdict": "approved"}]'), record(2)])
    card = render_card(DatasetIndex().with_month(facts_of(Edition(FEBRUARY), approved)))
    head = yaml.safe_load(card.split("---")[1])
    assert {"config_name": "reviewed", "data_files": "reviewed/*.parquet"} in head["configs"]
    assert "reviewed" in {info["config_name"] for info in head["dataset_info"]}
    assert "| `reviewed` | tasks that a person" in card
    assert "| `reviewed` |" not in render_card(_index(record))


def test_the_card_tells_every_month_and_every_column(record: Callable[..., TaskRecord]) -> None:
    card = render_card(_index(record))
    assert "| 2026-02 | `formulacode@2026-03` | 2 | 1 | – | 1 | 1.65× | +2 tasks, +1 verified |" in card
    assert "| 2026-01 | `formulacode@2026-02` | 0 | 0 | – | 0 | – | – |" in card
    for columns in (DATASET_COLUMNS, *map(table_columns, TABLES.values())):
        assert all(f"| `{column.name}` | {column.type} | {column.description} |" in card for column in columns)


def test_the_card_counts_the_tasks_that_replay(record: Callable[..., TaskRecord]) -> None:
    verdicts = (("confirmed", "could_not_run"), ("confirmed", "not_confirmed"), ("could_not_run",), ())
    records = [
        record(number, replays=json.dumps([replay_note(verdict) for verdict in some]))
        for number, some in enumerate(verdicts)
    ]
    facts = facts_of(Edition(FEBRUARY), tables_of(records))
    assert (facts.tasks, facts.replayed, facts.confirmed) == (4, 2, 1)
    assert "| 4 | 2 | 2, 1 | 1 |" in render_card(DatasetIndex().with_month(facts))


def test_the_card_tells_validity_by_machine(record: Callable[..., TaskRecord]) -> None:
    there = {"machine": "Xeon | <b>, 16 cores", "cpu_family": "GenuineIntel family 6 model 143", "speedup": 1.5}
    lost = replay_note("not_confirmed", **{**there, "measured": "unchanged", "speedup": 1.0, "instructions_ratio": 2.4})
    nothing = dict.fromkeys(("measured", "speedup", "low", "high", "instructions_ratio"))
    made = [
        [replay_note("confirmed"), replay_note("confirmed", **there)],
        [replay_note("confirmed"), lost],
        [replay_note("confirmed"), replay_note("could_not_run", **{**there, **nothing})],
    ]
    records = [record(number, replays=json.dumps(notes)) for number, notes in enumerate(made)]
    index = DatasetIndex().with_month(facts_of(Edition(FEBRUARY), tables_of(records)))
    card = render_card(DatasetIndex.parse(index.to_json(), "here"))
    for line in (
        "| 2026-02 | EPYC, 2 cores | 3 | 3 | 3 of 3 | 3 of 3 | 1.00 | – | 3 of 3 |",
        "| 2026-02 | Xeon \\| &lt;b&gt;, 16 cores | 3 | 3 | 1 of 2 | 1 of 3 | 0.62 | – | 1 of 2 |",
        "| 2026-02 | GenuineIntel family 6 model 143 | 3 | 3 | 1 of 2 | 1 of 3 | 0.62 | – | 1 of 2 |",
        "| 2026-02 | all machines | 3 | 6 | 2 of 3 | 1 of 3 | 0.87 | – | 2 of 3 |",
    ):
        assert line in card.splitlines(), line
    assert "arXiv 2607.01211" in card
    assert "arXiv" not in render_card(_index(record))


def test_the_same_months_give_the_same_card(record: Callable[..., TaskRecord]) -> None:
    assert render_card(_index(record)) == render_card(DatasetIndex.parse(_index(record).to_json(), "here"))


def test_the_card_names_who_accepted_a_month_as_it_is_and_why(record: Callable[..., TaskRecord]) -> None:
    accepted = Acceptance(
        month="2026-02",
        stage=Stage.IMAGES,
        accepted_at=datetime(2026, 3, 5, tzinfo=UTC),
        accepted_by="Ada",
        reason="a mirror was down",
        summary="3 of 5 pull requests failed, 40% may",
        failed=3,
        done=2,
    )
    facts = facts_of(Edition(FEBRUARY, (accepted.card_line,)), tables_of([record(1)]))
    line = "- 2026-02, images: 3 of 5 pull requests failed, 40% may; accepted by Ada on 2026-03-05: a mirror was down"
    assert line in render_card(DatasetIndex().with_month(facts)).splitlines()
    assert "Accepted" not in render_card(_index(record))


def test_reasons_of_people_are_text_and_nothing_else(record: Callable[..., TaskRecord]) -> None:
    hostile = "a\n## b <b> [c](d)"
    made = Correction(tag="formulacode@2026-03.1", difference=hostile, reason=hostile)
    facts = facts_of(Edition(FEBRUARY, (f"images: {hostile}",), (made,)), tables_of([record(1)]))
    lines = render_card(DatasetIndex().with_month(facts)).splitlines()
    text = r"a ## b &lt;b&gt; \[c](d)"
    assert f"- `{made.tag}` differs from the release before: {text}. Why: {text}" in lines
    assert f"- 2026-02, images: {text}" in lines


def test_the_card_draws_the_speedups_and_counts_the_licenses(record: Callable[..., TaskRecord]) -> None:
    told = [("MIT", 1.3), ("MIT", 1.25), ("MIT OR Apache-2.0", 30.0), (None, 1.06)]
    rows = [record(number, license=license, speedup=speedup) for number, (license, speedup) in enumerate(told)]
    card = render_card(DatasetIndex().with_month(facts_of(Edition(FEBRUARY), tables_of(rows))))
    assert f"   1.25–1.5×  {'█' * 40} 2\n" in card
    assert f"10× and more  {'█' * 20} 1\n" in card
    assert "        2–4×   0\n" in card
    for line in ("| MIT | 2 |", "| MIT OR Apache-2.0 | 1 |", "| not known | 1 |"):
        assert line in card
