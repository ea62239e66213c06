"""A released month replayed in a home that does not know it: all it has is the dataset, and the images."""

from __future__ import annotations

import json
import re
import shlex

import pytest

from formulacode_dagster.models.month import Month
from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.embedded import start_embedded
from formulacode_dagster.operating.store.measurements import replays_of
from sandbox.session import running_sandbox
from tests.support.documents import USERS_TEXT

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

MONTH = Month.parse("2026-02")
ITEM, TASK = "sample-org/gridpath#12", "sample-org__gridpath-12"


@pytest.fixture(scope="module")
def dataset(demo):
    """How the demo's Hub is reached, and nothing else of its sandbox."""
    state = demo.home / "sandbox"
    with running_sandbox(state / "repositories", state, samples=True) as sandbox:
        yield {name: value for name, value in sandbox.environment.items() if name.startswith("HF_")}


def test_a_task_is_confirmed_from_its_row_and_its_image(demo, new_home, dataset) -> None:
    (command,) = re.findall(r"^\.venv/bin/fc-data (replay --month 2026-02) +#", USERS_TEXT, flags=re.MULTILINE)
    # what a registry is to Docker: of the other home nothing but its images is there
    builds = new_home.home / "builds"
    builds.mkdir(parents=True)
    (builds / "images").symlink_to(demo.home / "builds" / "images")

    replayed = new_home.fc_data(*shlex.split(command), "--only", ITEM, **dataset)
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    assert "confirmed" in replayed.stdout
    database = Database(start_embedded(new_home.home / "postgres"))
    with database.transaction() as connection:
        ((task, (replay,)),) = replays_of(connection, MONTH.key).items()
    database.close()
    assert (task, replay.verdict, replay.release) == (TASK, "confirmed", MONTH.tag())
    assert replay.is_same_harness
    assert replay.measurement is not None
    assert replay.measurement.machine
    assert {sample.arm for result in replay.measurement.results for sample in result.samples} == {
        "base",
        "oracle",
        "control",
    }
    assert json.loads(replay.note.model_dump_json())["speedup"] == replay.measurement.speedup

    # the second time there is nothing to do
    again = new_home.fc_data(*shlex.split(command), "--only", ITEM, **dataset)
    assert again.returncode == 0, again.stdout + again.stderr
    assert "2026-02 succeeded in" in again.stdout


def test_a_daemon_that_does_not_answer_is_named_by_where_it_is(demo, new_home, dataset) -> None:
    (command,) = re.findall(r"^\.venv/bin/fc-data (replay .* --docker-host .*)$", USERS_TEXT, flags=re.MULTILINE)
    command = command.replace("ssh://elsewhere", "tcp://127.0.0.1:9").replace("owner/repo#123", ITEM)
    refused = new_home.fc_data(*shlex.split(command), **dataset, FC_ENGINE="docker")
    assert refused.returncode == 1
    assert "docker: " in refused.stdout
    assert "no answer" in refused.stdout


def test_a_month_that_was_never_released_is_one_clear_message(new_home, dataset) -> None:
    refused = new_home.fc_data("replay", "--month", "2025-01", **dataset)
    assert refused.returncode == 1
    assert "2025-01 was never released to hub:" in refused.stdout
    assert "HF_DATASET" in refused.stdout
