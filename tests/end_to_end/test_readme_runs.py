"""Commands of the README and the site, word by word, in the home that the demo left: they find its services."""

from __future__ import annotations

import re
import shlex

import pytest

from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.operating.store import ledger
from tests.support.documents import USERS_TEXT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

RUNS = re.findall(r"^\.venv/bin/fc-data (run .*?)(?:\s+#.*)?$", USERS_TEXT, flags=re.MULTILINE)
ITEM = "sample-org/gridpath#12"


def entries(database, month: str) -> dict[tuple[Stage, str], tuple[ItemState, object]]:
    with database.transaction() as connection:
        found = ledger.entries_of(connection, month)
    return {
        # what was skipped is looked at again each time
        (entry.stage, entry.item): (entry.state, entry.finished_at if entry.state is not ItemState.SKIPPED else None)
        for entry in found
    }


def test_the_month_is_run_again(call_in_demo, demo_database) -> None:
    (command,) = [command for command in RUNS if "--stage" not in command]
    before = entries(demo_database, "2026-02")
    ran = call_in_demo(*shlex.split(command))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2026-02 succeeded in" in ran.stdout
    assert entries(demo_database, "2026-02") == before


def test_the_release_of_the_demo_is_written_as_pages(call_in_demo) -> None:
    ran = call_in_demo("site", "build/site")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "2 months: " in ran.stdout


def test_an_image_is_built_again_and_is_the_same(call_in_demo, demo_database) -> None:
    (command,) = re.findall(r"^\.venv/bin/fc-data (rebuild .*)$", USERS_TEXT, flags=re.MULTILINE)
    before = entries(demo_database, "2026-02")
    ran = call_in_demo(*shlex.split(command))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{ITEM}: equal to the image" in ran.stdout
    assert entries(demo_database, "2026-02") == before


def test_the_log_of_an_attempt_is_whole(call_in_demo) -> None:
    (command,) = re.findall(r"^\.venv/bin/fc-data (why .* --attempt \d+)$", USERS_TEXT, flags=re.MULTILINE)
    ran = call_in_demo(*shlex.split(command))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "Successfully built" in ran.stdout


def test_one_pull_request_is_built_again(call_in_demo, demo_database) -> None:
    (command,) = [command for command in RUNS if "--only" in command]
    assert ITEM in command
    before = entries(demo_database, "2026-02")
    ran = call_in_demo(*shlex.split(command))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    after = entries(demo_database, "2026-02")
    changed = {key for key in after if after[key] != before.get(key)}
    assert changed == {(Stage.IMAGES, ITEM)}
    assert after[Stage.IMAGES, ITEM][0] is ItemState.DONE
