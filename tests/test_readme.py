"""README, site and CONTRIBUTING are true: a test runs each command; files, settings and samples are there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

from formulacode_dagster.cli.app import app
from formulacode_dagster.models.items import ItemState, LedgerEntry, Stage
from formulacode_dagster.operating.store import ledger
from formulacode_dagster.operating.store.blobs import put_log
from formulacode_dagster.operating.store.database import Database
from resources.documentation import SETTINGS
from tests.support.command_line import FcData
from tests.support.deployments import VARIABLES
from tests.support.documents import CONTRIBUTING, OWN_NAMES_TEXT, PAGES, ROOT, USERS_TEXT, blocks_of
from tests.support.expected_outcomes import expected_outcomes

MONTH, ITEM = "2026-02", "sample-org/gridpath#12"
README_LINES = 165

HERE = "tests/test_readme.py::test_a_cheap_command_does_what_it_says"
ACCEPT = 'fc-data accept --month 2026-02 --stage images --by "Ada Byron" --reason "their mirror is gone for good"'
RUN_BY = {
    "make demo": "tests/end_to_end/test_demo.py::test_the_demo_succeeds_and_says_what_it_did",
    "sudo deploy/systemd/install.sh": "tests/deploy/test_systemd_runs.py::"
    "test_what_was_installed_is_healthy_and_kept_from_others",
    "sudo deploy/celery/install.sh": "tests/deploy/test_celery_by_systemd.py::"
    "test_runs_go_to_workers_of_celery_once_these_are_installed",
    "kubectl apply --kustomize deploy/kubernetes": "tests/deploy/test_kubernetes.py::"
    "test_kustomize_puts_one_image_everywhere_runs_included",
    "make dev": "tests/end_to_end/test_ui.py::test_the_asset_graph_shows_every_group_and_every_asset",
    "make test": ".ci/run",
    "make check": ".ci/run",
    "make test-fast": "tests/test_readme.py::test_every_target_of_make_exists_and_has_help",
    "make docs": ".ci/run",
    "fc-data preflight": HERE,
    "fc-data run --month 2026-02": "tests/end_to_end/test_readme_runs.py::test_the_month_is_run_again",
    "fc-data funnel --month 2026-02": HERE,
    "fc-data plan --month 2026-03": HERE,
    "fc-data sandbox --repositories /path/to/mirrors": "tests/sandbox/test_session.py::"
    "test_the_command_prints_the_environment_and_ends_on_interrupt",
    'fc-data repositories allow owner/repo --reason "few stars, good benchmarks"': HERE,
    'fc-data repositories deny owner/repo --reason "its maintainers asked us to"': HERE,
    "fc-data repositories show --month 2026-02": HERE,
    "fc-data offline schema": HERE,
    **dict.fromkeys(
        (
            "git clone --quiet --depth 1 --branch gh-pages https://github.com/sunpy/sunpy-benchmarks site",
            "python3 -m http.server 8000 --directory site &",
            "fc-data dashboards scrape http://localhost:8000/ tables",
            "fc-data dashboards steps tables",
            "kill $!",
        ),
        "tests/formulacode_dagster/cli/test_dashboards.py::test_the_five_minutes_of_the_readme",
    ),
    **dict.fromkeys(
        (
            "fc-data run --month 2026-02 --stage repositories --offline-source /path/to/mirrors",
            "fc-data run --month 2026-02 --stage pull_requests --offline-source /path/to/mirrors",
            "fc-data offline export --month 2026-02 exported",
            "fc-data run --month 2026-02 --stage repositories --offline-source exported",
        ),
        "tests/end_to_end/test_readme_offline.py::test_a_month_goes_in_from_mirrors_and_out_and_in_again",
    ),
    "fc-data benchmark --repository owner/name --commits v1.0..v2.0 --steps 20": "tests/formulacode_dagster/"
    "measuring/commit_benchmarks/test_order.py::test_the_command_of_the_documentation_benchmarks_commits",
    "fc-data tune": HERE,
    "fc-data profile owner/repo#123 --page flames.html": "tests/formulacode_dagster/cli/test_profile.py::"
    "test_the_documented_command_samples_both_sides_and_stores_them",
    "fc-data dashboards reports numpy pages --coverage": "tests/formulacode_dagster/releasing/commit_reports/"
    "test_gathering.py::test_the_command_of_the_documentation_writes_a_page_for_each_commit",
    "fc-data dashboards candidates numpy": "tests/formulacode_dagster/measuring/breakpoints/test_candidates.py::"
    "test_the_command_of_the_documentation_names_candidates_by_month",
    "fc-data verify --task path/to/task": "tests/formulacode_dagster/building/images/test_verify_command.py::"
    "test_a_task_folder_is_built_and_verified_and_tampering_is_found",
    ACCEPT: HERE,
    'fc-data run --month 2026-02 --stage published_dataset --correction "two patches were measured anew"': "tests/"
    "formulacode_dagster/releasing/dataset/test_correcting.py::test_the_command_of_the_documentation_releases_a_revision",
    "fc-data site build/site": "tests/formulacode_dagster/library/site/test_build.py::"
    "test_the_readmes_command_writes_the_site_of_the_configured_dataset",
    "fc-data export --month 2026-02 --format harbor build/tasks": "tests/formulacode_dagster/releasing/exports/"
    "test_write.py::test_the_command_exports_what_it_can_of_a_month_and_names_the_rest",
    **dict.fromkeys(
        (f"fc-data evaluate build/tasks/owner__repo-123 --agent {agent}" for agent in ("oracle", "nop", "my.patch")),
        "tests/formulacode_dagster/releasing/exports/test_attacks.py::test_the_command_grades_a_patch_and_prints_the_report",
    ),
    **dict.fromkeys(
        (
            "fc-data results run --release formulacode@2026-03 --agent oracle --attempts 1",
            "fc-data results run --release formulacode@2026-03 --agent codex --model openai/gpt-5.5 "
            "--dollars 50 --allow-agent-host api.openai.com --agent-env OPENAI_API_KEY",
        ),
        "tests/formulacode_dagster/releasing/results/test_release_runs.py::test_the_command_runs_and_says_what_is_left",
    ),
    "fc-data results judge --release formulacode@2026-03": "tests/formulacode_dagster/releasing/results/"
    "test_hack_judge.py::test_the_command_asks_the_model_of_the_settings_and_is_off_without_one",
    "fc-data results regrade --release formulacode@2026-03": "tests/formulacode_dagster/releasing/results/"
    "test_regrading.py::test_the_command_says_what_changed",
    **dict.fromkeys(
        (
            "fc-data results take jobs/2026-03-01__12-00-00",
            "fc-data results take runs --from owner/dataset --revision formulacode@2026-03",
        ),
        "tests/formulacode_dagster/releasing/results/test_taking.py::"
        "test_the_command_takes_runs_and_names_refused_ones",
    ),
    'fc-data review owner/repo#123 --verdict approved --by "Ada Byron" --note "slow, as users say"': (
        "tests/formulacode_dagster/cli/test_review.py::"
        "test_the_documented_review_is_stored_next_to_earlier_ones_and_shown"
    ),
    "fc-data replay --month 2026-02": "tests/end_to_end/test_replay.py::"
    "test_a_task_is_confirmed_from_its_row_and_its_image",
    "fc-data replay --month 2026-02 --only owner/repo#123 --docker-host ssh://elsewhere": "tests/end_to_end/"
    "test_replay.py::test_a_daemon_that_does_not_answer_is_named_by_where_it_is",
    **dict.fromkeys(
        (
            "fc-data replay pack --month 2026-02 build/tasks.tar",
            "fc-data replay pack --month 2026-02 build/tasks.tar --only owner/repo#123",
            "fc-data replay pack --month 2026-02 --slim build/tasks.tar",
            "tar -xf tasks.tar && tasks/replay --times 3 --results results.json",
            "fc-data replay take results.json",
        ),
        "tests/formulacode_dagster/releasing/replays/test_packed_replay.py::test_the_documented_commands_pack_and_take",
    ),
    "fc-data migrate": HERE,
    "fc-data backup": HERE,
    **dict.fromkeys(
        (
            "fc-data release show --month 2026-02",
            "fc-data release revise --month 2026-02 --reason WHY",
            "fc-data release withdraw owner/repo#123 --by NAME --reason WHY",
        ),
        "tests/formulacode_dagster/releasing/dataset/test_correcting.py::"
        "test_a_task_is_withdrawn_by_a_revision_that_lacks_it_and_stays_out",
    ),
    "fc-data release verify --from hub": "tests/formulacode_dagster/releasing/dataset/test_integrity.py::"
    "test_the_command_verifies_what_the_database_records",
    "fc-data pools": HERE,
    "fc-data housekeeping": HERE,
    "fc-data housekeeping --remove": HERE,
    f"fc-data rebuild {ITEM}": "tests/end_to_end/test_readme_runs.py::test_an_image_is_built_again_and_is_the_same",
    "fc-data run --month 2026-02 --stage images --agent codex --agent-concurrency 2 "
    "--agent-tasks-per-repository 3": "tests/formulacode_dagster/cli/test_synthesize.py::"
    "test_a_month_is_run_with_the_agent_that_the_options_name",
    "fc-data synthesize owner/repo#123 --agent codex": "tests/formulacode_dagster/cli/test_synthesize.py::"
    "test_the_command_of_the_documentation_tells_what_is_missing",
    "fc-data contexts list": HERE,
    f"fc-data why {ITEM}": HERE,
    f"fc-data why {ITEM} --log images": HERE,
    f"fc-data show {ITEM} statement": "tests/formulacode_dagster/releasing/dataset/test_correcting.py::"
    "test_what_a_stage_left_is_shown",
    f"fc-data why {ITEM} --attempt 1": "tests/end_to_end/test_readme_runs.py::test_the_log_of_an_attempt_is_whole",
    f"fc-data run --month 2026-02 --stage images --only {ITEM} --force": "tests/end_to_end/test_readme_runs.py::"
    "test_one_pull_request_is_built_again",
}
"""Where each command of the README is run. `make X` is what runs `fc-data X`, which a test below holds."""

SAID = {
    "fc-data preflight": "postgres",
    "fc-data funnel --month 2026-02": "Funnel of 2026-02",
    "fc-data plan --month 2026-03": "Expected of 2026-03",
    'fc-data repositories allow owner/repo --reason "few stars, good benchmarks"': "owner/repo is allowed",
    'fc-data repositories deny owner/repo --reason "its maintainers asked us to"': "owner/repo is denied",
    "fc-data repositories show --month 2026-02": "The list is empty",
    "fc-data offline schema": "pull_requests: a row is a merged pull request",
    ACCEPT: "1 of 1 pull requests failed, 40% may; accepted by Ada Byron: their mirror is gone for good",
    "fc-data migrate": "is up to date",
    "fc-data backup": "rows of",
    "fc-data pools": "measure: 1",
    "fc-data tune": "are not shown",
    "fc-data housekeeping": "builds: to remove: leftovers of dead processes",
    "fc-data housekeeping --remove": "builds: removed: leftovers of dead processes",
    "fc-data contexts list": "There is no context",
    f"fc-data why {ITEM}": "failed (build)",
    f"fc-data why {ITEM} --log images": "the whole log",
}
"""Output of a cheap command, over a database with one pull request's history."""


def _lines() -> list[str]:
    blocks = blocks_of("bash")
    # a comment starts behind a blank; the `#` of an item does not
    lines = [re.sub(r"\s+#.*", "", line).strip() for block in blocks for line in block.splitlines()]
    return list(dict.fromkeys(line for line in lines if line))


ASSIGNMENTS = [line for line in _lines() if re.match(r"[A-Z_]+=", line)]
COMMANDS = [line.removeprefix(".venv/bin/") for line in _lines() if line not in ASSIGNMENTS]


def test_every_command_is_run_by_a_test_that_is_there() -> None:
    assert sorted(COMMANDS) == sorted(RUN_BY)
    for command, where in RUN_BY.items():
        path, _, name = where.partition("::")
        text = (ROOT / path).read_text(encoding="utf-8")
        assert f"def {name}(" in text if name else re.search(rf"^[^#\n]*\b{command}\b", text, re.MULTILINE), where


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("fc-data ")])
def test_every_fc_data_command_can_be_parsed(command: str) -> None:
    _, name, *arguments = shlex.split(command)
    known = get_command(app).commands
    assert name in known
    known[name].make_context(name, arguments)


def test_the_options_the_text_names_exist() -> None:
    named = set(re.findall(r"`(?:fc-data )?(--[a-z-]+)", OWN_NAMES_TEXT)) - {"--install-completion"}
    commands = get_command(app).commands.values()
    groups = [command for command in commands if hasattr(command, "commands")]
    known = {
        option
        for command in (
            *get_command(app).commands.values(),
            *(each for group in groups for each in group.commands.values()),
        )
        for p in command.params
        for option in (*p.opts, *p.secondary_opts)
    }
    assert {"--start-date", "--force", "--dry-run", "--log"} <= named <= known


@pytest.mark.parametrize("command", [command for command in COMMANDS if command.startswith("make ")])
def test_every_target_of_make_exists_and_has_help(command: str) -> None:
    target = command.removeprefix("make ")
    shown = subprocess.run(["make", "-n", target], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    if target in ("demo", "dev"):
        assert f".venv/bin/fc-data {target}\n" in shown
    helped = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.search(rf"^{target} +\S", helped, flags=re.MULTILINE)


@pytest.fixture
def told(database: Database, database_url: str) -> str:
    """A database that knows the item of the README; its URL."""
    failed = LedgerEntry(stage=Stage.IMAGES, month=MONTH, item=ITEM, state=ItemState.FAILED, reason="build")
    taken_in = LedgerEntry(stage=Stage.PULL_REQUESTS, month=MONTH, item=ITEM, state=ItemState.DONE)
    with database.transaction() as connection:
        ledger.record(connection, [taken_in, failed])
        put_log(
            connection,
            stage=failed.stage,
            month=MONTH,
            item=ITEM,
            attempt=1,
            state=failed.state,
            run_id="",
            text="the whole log",
        )
    return database_url


@pytest.mark.parametrize("command", SAID)
def test_a_cheap_command_does_what_it_says(command: str, told: str, call_fc_data: FcData) -> None:
    assert RUN_BY[command] == HERE
    ran = call_fc_data(*shlex.split(command)[1:], FC_DATABASE_URL=told, FC_ENGINE="process")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert SAID[command] in ran.stdout


@pytest.mark.slow
def test_a_shell_runs_a_command_as_it_stands(tmp_path: Path) -> None:
    command = "fc-data offline schema"
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "-c", command],
        cwd=tmp_path,
        env={"PATH": path, "FC_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert SAID[command] in ran.stdout


def test_every_setting_it_names_is_one() -> None:
    known = {setting.name for setting in SETTINGS} | VARIABLES
    assert {line.partition("=")[0] for line in ASSIGNMENTS} <= known
    assert set(re.findall(r"\b(?:FC|LLM|HF|GH|DOCKERHUB|GITHUB)_[A-Z_]+\b", OWN_NAMES_TEXT)) <= known


def test_every_sample_it_names_is_generated_and_ends_as_a_task() -> None:
    named = set(re.findall(r"\b[a-z-]+/[a-z]+#\d+\b", USERS_TEXT)) - {"owner/repo#123"}
    assert named == {ITEM}
    (outcome,) = [expected for expected in expected_outcomes(MONTH) if expected.item == ITEM]
    assert (outcome.last_stage, outcome.state) == (Stage.PUBLISHED_DATASET, ItemState.DONE)


MOST_MODULES = 27
"""`__init__.py` included: about what a reader keeps in mind."""


def test_no_folder_holds_more_than_a_reader_keeps_in_mind() -> None:
    for package in ("assets", "formulacode_dagster", "resources", "sandbox"):
        folders = [path.parent for path in (ROOT / package).rglob("__init__.py")]
        modules = {str(folder): len([*folder.glob("*.py")]) for folder in folders}
        assert {folder: count for folder, count in modules.items() if count > MOST_MODULES} == {}


@pytest.mark.parametrize("text", [*PAGES.values(), CONTRIBUTING], ids=[*(path.name for path in PAGES), "CONTRIBUTING"])
def test_every_file_that_is_named_is_there(text: str) -> None:
    quoted = re.findall(r"`([\w./-]+/[\w./-]*|[\w-]+\.(?:py|toml|md|yaml))`", text)
    made_at_run_time = {".formulacode/", ".formulacode/site/index.html", "site/", "mirrors/", "GATE.md"}
    made_at_run_time |= {"dashboards.toml", "dataset/", "results/", "commit-benchmarks/"}
    made_at_run_time |= {"/opt/formulacode/venv", "/etc/formulacode/settings.env", "/var/lib/formulacode"}
    made_at_run_time |= {"deploy/compose/secrets/", "deploy/compose/secrets/settings.env"}
    bases = (ROOT, ROOT / "formulacode_dagster", ROOT / "assets", ROOT / "resources")
    # of a repository, an agent, or an exported task
    examples = {
        "owner/name.git",
        "owner/repo",
        "conftest.py",
        "setup.py",
        "sitecustomize.py",
        "stage.py",
        "edit.toml",
        "task.toml",
    }
    missing = [
        name for name in {*quoted} - made_at_run_time - examples if not any((base / name).exists() for base in bases)
    ]
    assert missing == []


def test_the_readme_keeps_to_what_users_need() -> None:
    assert len(PAGES[ROOT / "README.md"].splitlines()) <= README_LINES, "what it tells beyond that belongs to docs/"


def test_every_link_of_the_readme_leads_somewhere() -> None:
    targets = re.findall(r"\]\(([^)]+)\)", PAGES[ROOT / "README.md"].replace("\n", " "))
    local = [target for target in targets if not target.startswith("http")]
    assert {"LICENSE", ".env.example", "docs/released-task.png", "docs/library.md"} <= set(local)
    assert [target for target in local if not (ROOT / target.partition("#")[0]).exists()] == []
