"""`make demo` as a user sees it: what it prints, what it leaves, and that a second one has nothing to do."""

from __future__ import annotations

import time

import pytest

from assets.all import STAGE_ASSETS
from formulacode_dagster.building.images.repairs.built_metadata import RULE as METADATA_RULE
from formulacode_dagster.building.images.repairs.rules import rules
from formulacode_dagster.building.specs.spec import plan_build
from formulacode_dagster.cli.demo import DEMO_MONTHS
from formulacode_dagster.models.attempt import Rung
from formulacode_dagster.models.items import MONTH_STAGES, ItemState, Stage
from formulacode_dagster.operating.store import artifacts, ledger
from formulacode_dagster.operating.store.attempts import agents_used, attempts_of
from formulacode_dagster.operating.store.checks import verdicts
from formulacode_dagster.operating.store.pull_requests import done_in
from formulacode_dagster.operating.store.spending import spending_of
from formulacode_dagster.operating.store.usage import usage_totals
from formulacode_dagster.releasing.reporting.funnel import count_funnel
from tests.support.expected_outcomes import expected_outcomes, settled
from tests.support.samples import DEMO

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

PROCESS_ENDS = {Stage.PUBLISHED_IMAGES: (ItemState.SKIPPED, "process_engine")}


def last_entry(story):
    """Return the entry with an item's end; a skip by the process engine is no end."""
    return [entry for entry in story if (entry.state, entry.reason) != PROCESS_ENDS.get(entry.stage)][-1]


def test_the_demo_succeeds_and_says_what_it_did(demo) -> None:
    assert demo.status == 0, demo.output[-6000:]
    assert f"{len(DEMO)} sample repositories in" in demo.output
    for text in ("engine: ", "Funnel of 2026-01", "Funnel of 2026-02", "Why the others were not", "make dev", "tokens"):
        assert text in demo.output


@pytest.mark.parametrize("month", DEMO_MONTHS)
def test_every_sample_ends_as_its_definition_says(demo, demo_database, month) -> None:
    with demo_database.transaction() as connection:
        found = {}
        for expected in expected_outcomes(month, DEMO):
            story = [entry for entry in ledger.story(connection, expected.item) if entry.month == month]
            last = last_entry(story) if story else None
            found[expected.item] = (last.stage, last.state, settled(last.reason, expected.reason)) if last else None
    wanted = {
        expected.item: (expected.last_stage, expected.state, expected.reason)
        for expected in expected_outcomes(month, DEMO)
    }
    others = [item for item in wanted if found[item] != wanted[item] and "#" in item]
    assert found == wanted, "\n".join(demo.fc_data("why", item).stdout for item in others)


@pytest.mark.parametrize("month", DEMO_MONTHS)
def test_the_funnel_is_what_the_samples_imply(demo, demo_database, month) -> None:
    with demo_database.transaction() as connection:
        entries, usage = ledger.entries_of(connection, month), usage_totals(connection, month)
        funnel = count_funnel(month, entries, usage, spending_of(connection, month))
        released = artifacts.RELEASES.read(connection, month)
    expected = [expected for expected in expected_outcomes(month, DEMO) if "#" in expected.item]
    tasks = sum(entry.last_stage is Stage.PUBLISHED_DATASET and entry.state is ItemState.DONE for entry in expected)
    assert funnel.count("pull_requests") == len(expected)
    assert funnel.count("published") == tasks == released[0].tasks > 0
    assert funnel.count("published_images") == 0
    assert funnel.cost.api_points > 0
    assert funnel.cost.tokens_in > 0


@pytest.mark.parametrize("month", DEMO_MONTHS)
def test_every_gate_was_judged_and_passed(demo, demo_database, month) -> None:
    with demo_database.transaction() as connection:
        judged = verdicts(connection, month)
    assert {verdict.check for verdict in judged} == {
        check.name for asset in STAGE_ASSETS if asset.stage in MONTH_STAGES for check in asset.checks
    }
    assert [verdict.check for verdict in judged if not verdict.passed and verdict.blocking] == []
    assert [verdict.passed for verdict in judged if verdict.check == "reproduces"] == [True], (
        "an image built again is the same"
    )


@pytest.mark.parametrize("month", DEMO_MONTHS)
def test_without_an_agent_images_follow_from_environment_and_rules(demo, demo_database, month) -> None:
    """No agent runs unless one is named: every spec follows from the plan."""
    with demo_database.transaction() as connection:
        built = done_in(connection, month, Stage.IMAGES)
        keys = [pr.key for pr in built]
        images = artifacts.IMAGES.read_keys(connection, month, keys)
        planned = artifacts.ENVIRONMENTS.read_keys(connection, month, keys)
        attempts = [attempt for pr in built for attempt in attempts_of(connection, month, pr.key)]
        assert agents_used(connection, month) == []
        assert spending_of(connection, month)[Stage.IMAGES].tokens_in == 0
    assert attempts
    assert {attempt.rung for attempt in attempts} <= {Rung.STORED, Rung.NEAREST, Rung.RULES}
    known = {rule.name for rule in rules()} | {METADATA_RULE}
    assert {fix.rule for image in images.values() for fix in image.spec.fixes} <= known
    plain = [pr for pr in built if not images[pr.key].spec.fixes]
    assert plain
    for pr in plain:
        spec = images[pr.key].spec
        wanted = plan_build(pr=pr, environment=planned[pr.key], anchor_sha=spec.anchor_sha, os_image=spec.os_image)
        assert spec == wanted


def test_samples_are_stored_with_a_control_beside_them(demo, demo_database) -> None:
    with demo_database.transaction() as connection:
        measured = artifacts.MEASUREMENTS.read(connection, "2026-01")
    assert measured
    for row in measured:
        for result in row.results:
            arms = [sample.arm for sample in result.samples]
            assert {arms.count(arm) for arm in set(arms)} == {row.rounds}
            assert len(set(arms)) == 3
            assert row.rounds >= 4
            assert not row.is_faster or row.rounds >= row.rule.first_claim.units


@pytest.mark.parametrize("month", DEMO_MONTHS)
def test_the_tests_that_reach_a_change_were_run_on_both_sides(demo, demo_database, month) -> None:
    with demo_database.transaction() as connection:
        tested = artifacts.CORRECTNESS.read(connection, month)
        faster = [row for row in artifacts.MEASUREMENTS.read(connection, month) if row.is_faster]
    assert {(row.repository_id, row.number) for row in tested} == {(row.repository_id, row.number) for row in faster}
    for row in tested:
        assert row.problem == ""
        assert row.pass_to_pass or row.broken
        assert row.untraceable or 0 < row.covered_lines <= row.changed_lines


def test_the_report_holds_the_pictures(demo) -> None:
    for month in DEMO_MONTHS:
        report = (demo.home / "demo" / "reports" / f"{month}.html").read_text()
        assert "Funnel" in report
        assert "data:image" not in report
        assert f"formulacode@{month[:5]}" in report


def test_the_demo_ends_with_a_site_and_says_that_no_agent_was_run(demo) -> None:
    assert (demo.home / "site" / "index.html").is_file()
    assert any("formulacode@2026-03" in page.read_text() for page in (demo.home / "site").rglob("*.html"))
    assert "The site has no runs of agents: tasks that were built without Docker" in demo.output
    assert "With a Docker daemon, this adds some: FC_ENGINE=docker FC_HOME=" in demo.output


def test_a_second_demo_has_nothing_to_do_and_says_so(demo) -> None:
    started = time.monotonic()
    second = demo.fc_data("demo")
    assert second.returncode == 0, second.stdout + second.stderr
    assert "no GitHub call, no model call, no build" in second.stdout
    assert "images: " in second.stdout
    assert "1 done" not in second.stdout
    assert time.monotonic() - started < 60


def test_why_tells_an_item_from_intake_to_release(call_in_demo) -> None:
    done = next(
        expected for expected in expected_outcomes("2026-02", DEMO) if expected.last_stage is Stage.PUBLISHED_DATASET
    )
    told = call_in_demo("why", done.item)
    assert told.returncode == 0
    for stage in ("pull_requests", "classifications", "environments", "images", "measurements", "published_dataset"):
        assert stage in told.stdout
    logged = call_in_demo("why", done.item, "--log", "images")
    assert len(logged.stdout) > len(told.stdout)


def test_why_of_something_unknown_says_what_to_do(call_in_demo) -> None:
    told = call_in_demo("why", "nobody/nothing#1")
    assert told.returncode == 1
    assert "no data on nobody/nothing#1" in told.stderr
    assert "Traceback" not in told.stderr


def test_the_funnel_can_be_shown_again(call_in_demo) -> None:
    shown = call_in_demo("funnel", "--month", "2026-02")
    assert shown.returncode == 0
    assert "Funnel of 2026-02" in shown.stdout


def test_a_dry_run_of_a_new_month_writes_nothing(call_in_demo, demo_database) -> None:
    dry = call_in_demo("run", "--month", "2025-11", "--stage", "repositories", "--dry-run", GH_TOKENS="x")
    assert dry.returncode == 0, dry.stdout + dry.stderr
    with demo_database.transaction() as connection:
        assert ledger.entries_of(connection, "2025-11") == []
