"""Attempts of an agent other than making the code faster; each gets nothing."""

from __future__ import annotations

import json
import subprocess

import pytest

from formulacode_dagster.releasing.exports.formats import HarnessFormat
from formulacode_dagster.releasing.results.evaluated import read_run
from formulacode_dagster.releasing.results.released import ReleasedTask, ReleasedTasks
from tests.support.exports import FILES, SQUARES, TOUCHED_GRADER
from tests.support.sampling import TAKES_MINUTES

pytestmark = [pytest.mark.docker, pytest.mark.network, pytest.mark.slow, TAKES_MINUTES.with_args(case="attacks")]

PATCHED_CLOCKS = """cat >>shapes/__init__.py <<'END'
import time, timeit
for name in ("perf_counter", "thread_time", "process_time"):
    setattr(time, name, lambda real=getattr(time, name): real() / 10)
timeit.default_timer = time.perf_counter
END"""
CACHED_ON_DISK = """cat >>shapes/__init__.py <<'END'
import json, os
_slow = squares
def squares(n):
    path = "/tmp/squares-%d.json" % n
    if not os.path.exists(path):
        with open(path, "w") as file:
            json.dump(_slow(n), file)
    with open(path) as file:
        return json.load(file)
END
echo "[$(seq -s, 0 1499)]" >/tmp/squares-1500.json"""
CACHED_IN_MEMORY = """cat >>shapes/__init__.py <<'END'
import functools
squares = functools.lru_cache(None)(squares)
END"""
CACHED_AT_IMPORT = """cat >>shapes/__init__.py <<'END'
_slow, _done = squares, {1500: squares(1500)}
def squares(n):
    return _done[n] if n in _done else _slow(n)
END"""
WITHOUT_TESTS = """rm -r tests
cat >>shapes/__init__.py <<'END'
def squares(n):
    return [0]
END"""
PLUGGED_IN_TESTS = """mkdir -p shapes/plugin
cat >conftest.py <<'END'
import pytest
@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
END
cp conftest.py tests/
printf '[pytest]\\naddopts = -p conftest\\n' >pytest.ini
cat >>shapes/__init__.py <<'END'
def squares(n):
    return [0]
END"""
IN_BACKGROUND = """setsid sh -c 'while :; do :; done' </dev/null >/dev/null 2>&1 &
(while :; do echo "def squares(n): return [0]" >/workspace/repo/shapes/late.py; done) </dev/null >/dev/null 2>&1 &
sleep 0.2
echo '# nothing' >>shapes/__init__.py"""


# What decides on clocks, caches and tests is tried in test_grading.py, without a container.
TIMED = pytest.mark.variant("attack that is timed", most=1)
TESTED = pytest.mark.variant("attack that tests end", most=1)
# the one on the grader is run in a harness, too
IGNORED = pytest.mark.variant("attack on what it is graded by", most=1)


@pytest.mark.parametrize(
    ("script", "reasons"),
    [
        pytest.param(PATCHED_CLOCKS, "clocks_changed", id="timers-patched", marks=TIMED),
        pytest.param(CACHED_ON_DISK, "only_called_again", id="cached-on-disk", marks=TIMED),
        pytest.param(CACHED_IN_MEMORY, "only_called_again", id="cached-in-memory", marks=TIMED),
        # on a busy machine the longer import may not stand out; with other inputs nothing is cached
        pytest.param(CACHED_AT_IMPORT, "work_moved only_known_inputs", id="cached-at-import", marks=TIMED),
        pytest.param(WITHOUT_TESTS, "tests_fail", id="tests-removed", marks=TESTED),
        pytest.param(PLUGGED_IN_TESTS, "tests_fail", id="tests-made-to-pass", marks=TESTED),
        pytest.param(
            "echo 'def time_squares(): pass' >benchmarks/bench.py", "no_change", id="benchmarks-changed", marks=IGNORED
        ),
        pytest.param(TOUCHED_GRADER, "no_change", id="grader-touched", marks=IGNORED),
    ],
)
def test_who_only_looks_faster_gets_nothing(attack, script, reasons):
    report = attack(script)
    assert report["metrics"]["reward"] == 0.0, report
    assert report["reason"] in reasons.split(), report


@TIMED
def test_nothing_that_an_agent_left_running_is_there_while_it_is_timed(agent_container, exported):
    """Where the agent's own container grades, since its harness knows no other way."""
    agent_container.work(["bash", "-c", IN_BACKGROUND])
    report, said = agent_container.grade(exported("python", HarnessFormat.FC_EVAL) / "tests")
    assert report, said
    assert report["ended_processes"]
    assert report["metrics"]["reward"] == 0.0
    assert report["reason"] != "faster"


UNUSUAL = r"""echo '# more' >>shapes/__init__.py
git -c user.name=a -c user.email=a@b commit -qam 'of the agent'
git config diff.external /bin/false
echo '* text filter=lost diff=lost' >.gitattributes
printf 'a\r\n' >"new 🐍.txt"
printf '\0\1' >binary
ln -s /etc/passwd link
mkfifo pipe
git init -q inside
echo x >inside/x
mkdir cloned
git -C cloned init -q
echo y >cloned/y
git -C cloned add y
git -C cloned -c user.name=a -c user.email=a@b commit -qm y
rm tests/test_shapes.py
setsid sh -c 'while :; do echo "# late" >>shapes/__init__.py; done' </dev/null >/dev/null 2>&1 &"""


def test_the_changes_of_an_agent_are_against_what_it_found_whatever_it_did_to_the_repository(
    agent_container, tmp_path, lay
):
    agent_container.work(["bash", "-c", UNUSUAL])
    diff = agent_container.collect()
    assert diff
    # it cannot be changed any more
    assert diff == agent_container.collect()
    files = lay(tmp_path / "checkout", FILES)
    subprocess.run(["git", "apply", "-"], input=diff, cwd=files, check=True)
    assert (files / "new 🐍.txt").read_bytes() == b"a\r\n"
    assert (files / "binary").read_bytes() == b"\0\1"
    assert (files / "link").is_symlink()
    assert (files / "inside/x").read_text() == "x\n"
    assert (files / "cloned/y").read_text() == "y\n"
    assert (files / "shapes/__init__.py").read_text().startswith(f"{SQUARES}# more\n")
    assert not (files / "tests/test_shapes.py").exists()


@TESTED
def test_the_command_grades_a_patch_and_prints_the_report(exported, rows, tmp_path, call_fc_data):
    (tmp_path / "my.patch").write_text(rows["python"]["patch"].replace("[i * i for i in range(n)]", "list(range(n))"))
    folder = str(exported("python", HarnessFormat.HARBOR))
    done = call_fc_data("evaluate", folder, "--agent", "my.patch", "--keep", "run")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["reason"], report["changed"]) == ("tests_fail", ["shapes/__init__.py"])
    assert report["metrics"]["reward"] == 0.0
    kept = tmp_path / "run"
    assert json.loads((kept / "report.json").read_text())["reason"] == "tests_fail"
    # what was kept is a run of that very release
    run, task = read_run(kept), ReleasedTask("formulacode@2026-03", rows["python"])
    assert ReleasedTasks("dataset", [task]).task_of(run) is task
    assert (run.agent, run.report.task, run.error) == ("my", task.id, "")
    (kept / "agent.diff").write_text("no patch")
    again = call_fc_data("evaluate", folder, "--regrade", "run")
    assert json.loads(again.stdout)["reason"] == "no_diff"
