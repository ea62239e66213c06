import ast
import json
import os
import shutil
import subprocess
from importlib import resources
from pathlib import Path

import asv_runner
import pytest

from formulacode_dagster.measurement.changed_code import CodeLocation
from formulacode_dagster.measurement.remote import NotTimed, Remote, Timed, harness_archive
from formulacode_dagster.models.errors import ItemFailure

SUITE = {
    "pkg/__init__.py": "",
    "pkg/core.py": "def slow(n):\n    return sum(i for i in range(n))\n\n\ndef prepare():\n    return 1\n",
    "benchmarks/__init__.py": "",
    "benchmarks/bench.py": """
import os, sys, time
from pkg.core import prepare, slow

def time_slow():
    print("noise on stdout")
    print("noise on stderr", file=sys.stderr)
    slow(1000)

class TimeParams:
    params = [[10, 1000], ["a", "b"]]
    def setup(self, n, kind):
        prepare()
        if (n, kind) == (10, "b"):
            raise NotImplementedError
        self.data = list(range(n))
    def time_it(self, n, kind):
        slow(n)
    def time_uses_up(self, n, kind):
        self.data.pop()
        self.data.clear()

class Cached:
    def setup_cache(self):
        return {"k": 5}
    def time_cached(self, cache):
        assert cache["k"] == 5

class Cannot:
    def __init__(self):
        raise RuntimeError("no such device")
    def time_it(self):
        pass

def timeraw_import():
    return "import json"

def track_something():
    return 3

def mem_something():
    return [1]

def time_raises():
    raise ValueError("boom")

def time_hangs():
    while True:
        time.sleep(1)
time_hangs.timeout = 0.3

def time_exits():
    os._exit(3)
""",
    "benchmarks/bench_offline.py": "import module_that_is_not_there\n",
    "benchmarks/bench_exits.py": "import os\nos._exit(1)\n",
    "benchmarks/deep/__init__.py": "",
    "benchmarks/deep/bench_deep.py": "def time_deep():\n    pass\n",
}


@pytest.fixture
def remote(session, lay):
    lay(Path(session.repository), SUITE)
    return Remote(session, benchmark_dir="benchmarks", start_seconds=2)


@pytest.fixture
def survey(remote):
    return remote.survey(basenames={"core.py"}, limit=10, budget=60)


@pytest.fixture
def found(survey):
    return {benchmark.name: benchmark for benchmark in survey.benchmarks}


def take(remote, benchmark, seconds=0.01):
    return remote.time(benchmark, isolate=benchmark.isolate, seconds=seconds, hash_seed=1)[0]


def test_variables_of_benchmark_runs_are_set_in_the_session(session, lay):
    suite = {"benchmarks/bench.py": "import os\n\nif os.environ.get('FC_SUITE') == 'yes':\n    def time_it(): pass\n"}
    lay(Path(session.repository), suite)
    for variables, expected in (({}, []), ({"FC_SUITE": "yes"}, ["bench.time_it"])):
        remote = Remote(session, benchmark_dir="benchmarks", start_seconds=2, environment=variables)
        survey = remote.survey(basenames=set(), limit=1, budget=5)
        assert [benchmark.name for benchmark in survey.benchmarks] == expected


def test_a_slow_import_leaves_the_whole_budget_to_the_benchmarks(session, lay):
    lay(Path(session.repository), {"benchmarks/bench.py": "import time\n\ntime.sleep(1)\n\ndef time_it(): pass\n"})
    survey = Remote(session, benchmark_dir="benchmarks").survey(basenames=set(), limit=5, budget=0.9)
    assert [benchmark.outcome for benchmark in survey.benchmarks] == ["ran"]


def test_one_survey_tells_everything_about_a_suite(survey, found):
    assert set(found) == {
        "bench.time_slow",
        *(
            f"bench.TimeParams.{name}({n}, '{kind}')"
            for name in ("time_it", "time_uses_up")
            for n in (10, 1000)
            for kind in "ab"
        ),
        "bench.Cached.time_cached",
        "bench.timeraw_import",
        "bench.time_raises",
        "bench.time_hangs",
        "bench.time_exits",
        "deep.bench_deep.time_deep",
    }
    outcomes = {name: benchmark.outcome for name, benchmark in found.items()}
    assert outcomes["bench.time_slow"] == outcomes["deep.bench_deep.time_deep"] == "ran"
    assert outcomes["bench.Cached.time_cached"] == outcomes["bench.timeraw_import"] == "ran"
    assert outcomes["bench.TimeParams.time_it(10, 'b')"] == "skipped"
    assert outcomes["bench.time_raises"] == "error"
    assert "boom" in found["bench.time_raises"].message
    assert outcomes["bench.time_hangs"] == "timeout"
    assert outcomes["bench.time_exits"] == "crash"
    # Modules that cannot be imported, and a class that cannot be made, are lost by name and take nothing with them.
    assert set(survey.lost) == {"benchmarks.bench_offline", "benchmarks.bench_exits", "benchmarks.bench.Cannot"}
    assert "module_that_is_not_there" in survey.lost["benchmarks.bench_offline"]
    # What the timed call runs is known, what only the setup runs is not taken for it.
    core = {code.line for code in found["bench.TimeParams.time_it(10, 'a')"].codes}
    assert 1 in core
    assert 5 not in core
    assert not found["bench.timeraw_import"].traceable
    # Short calls behind a setup are batched, unless a call changes what the next one finds.
    assert not found["bench.TimeParams.time_it(1000, 'a')"].isolate
    assert found["bench.TimeParams.time_uses_up(1000, 'a')"].isolate


def test_benchmarks_are_timed_in_processes_of_their_own(remote, found):
    short = take(remote, found["bench.time_slow"])
    assert isinstance(short, Timed)
    assert short.seconds < 0.01
    assert short.calls > 10
    assert isinstance(take(remote, found["bench.TimeParams.time_uses_up(1000, 'a')"]), Timed)
    assert isinstance(take(remote, found["bench.Cached.time_cached"]), Timed)
    assert isinstance(take(remote, found["bench.timeraw_import"]), Timed)
    skipped = take(remote, found["bench.TimeParams.time_it(10, 'b')"])
    assert isinstance(skipped, NotTimed)
    assert skipped.kind == "skipped"
    assert take(remote, found["bench.time_raises"]).kind == "error"
    assert take(remote, found["bench.time_hangs"]).kind == "timeout"
    assert take(remote, found["bench.time_exits"]).kind == "crash"


def test_a_benchmark_with_other_parameters_than_surveyed_is_missing(remote, found):
    other = found["bench.TimeParams.time_it(10, 'a')"].model_copy(update={"name": "bench.TimeParams.time_it(11, 'a')"})
    assert take(remote, other).kind == "missing"


def test_only_named_benchmarks_are_run_again_and_without_time_none_is(remote):
    only = remote.survey(basenames=set(), limit=10, budget=60, only=["bench.time_slow"])
    assert [benchmark.name for benchmark in only.benchmarks] == ["bench.time_slow"]
    two = remote.survey(basenames=set(), limit=10, budget=60, enough=2)
    assert sum(found.outcome == "ran" for found in two.benchmarks) == 2
    assert {found.outcome for found in two.benchmarks} <= {"ran", "untraced", "error", "timeout", "crash", "skipped"}
    none = remote.survey(basenames=set(), limit=10, budget=0.0)
    assert {benchmark.outcome for benchmark in none.benchmarks} == {"untraced"}


SPEAKING = {
    "pkg/__init__.py": "",
    "pkg/core.py": "def changed(n):\n    return n\n\n\ndef common(n):\n    return n\n",
    "benchmarks/__init__.py": "",
    "benchmarks/bench_a.py": """
from pkg.core import common

class TimeCommon:
    params = [1, 2, 3]
    def time_common(self, n):
        common(n)

def time_nothing():
    pass
""",
    "benchmarks/bench_b.py": """
from pkg import core

def time_beside():
    core.common(1)

class TimeChanged:
    params = [1, 2]
    def time_changed(self, n):
        core.changed(n)
""",
}


def test_benchmarks_that_speak_of_the_change_come_first_and_one_of_each_before_its_other_combinations(session, lay):
    lay(Path(session.repository), SPEAKING)
    remote = Remote(session, benchmark_dir="benchmarks", start_seconds=2)
    found = remote.survey(basenames=set(), limit=5, budget=0, names={"changed", "common"})
    assert [benchmark.name for benchmark in found.benchmarks] == [
        "bench_b.TimeChanged.time_changed(1)",
        "bench_b.time_beside",
        "bench_a.TimeCommon.time_common(1)",
        "bench_a.time_nothing",
        "bench_b.TimeChanged.time_changed(2)",
        "bench_a.TimeCommon.time_common(2)",
        "bench_a.TimeCommon.time_common(3)",
    ]


def test_a_survey_goes_on_past_what_is_enough_until_one_enters_the_changed_code(session, lay):
    lay(Path(session.repository), SPEAKING)
    remote = Remote(session, benchmark_dir="benchmarks", start_seconds=2)

    def ran(line):
        at = [CodeLocation("src/pkg/core.py", line)]
        survey = remote.survey(basenames={"core.py"}, limit=5, budget=60, enough=1, until=at)
        return sum(benchmark.outcome == "ran" for benchmark in survey.benchmarks)

    assert ran(5) == 1
    assert ran(1) == 4
    assert ran(99) == 7


@pytest.fixture
def one(session, lay):
    """Remote and survey of a suite of one module."""

    def make(source):
        lay(Path(session.repository), {"benchmarks/bench.py": source})
        remote = Remote(session, benchmark_dir="benchmarks", start_seconds=2)
        survey = remote.survey(basenames=set(), limit=1, budget=20)
        return remote, survey

    return make


def test_a_benchmark_that_prints_an_answer_is_not_believed(one):
    forged = json.dumps({"event": "timed", "seconds": 1e-12, "calls": 1})
    remote, survey = one(f"import os\ndef time_it():\n    os.write(1, b'{'0' * 32} {forged}\\n')\n    os._exit(0)\n")
    assert survey.benchmarks[0].outcome == "crash"
    assert take(remote, survey.benchmarks[0]).kind == "no_result"


def test_what_the_author_said_about_the_timing_is_honoured(one):
    source = """
class Suite:
    number = 3
    repeat = 4
    warmup_time = 0
    def setup(self):
        self.calls = 0
    def time_it(self):
        self.calls += 1
        assert self.calls <= 3
    def teardown(self):
        assert self.calls == 3 or self.first
        self.first = False
    first = True
"""
    remote, survey = one(source)
    assert survey.benchmarks[0].outcome == "ran"
    timed = take(remote, survey.benchmarks[0], seconds=1.0)
    assert isinstance(timed, Timed), timed
    assert timed.calls == 12


def test_with_number_one_every_call_finds_a_fresh_setup(one):
    source = """
class Suite:
    number = 1
    def setup(self):
        self.fresh = True
    def time_it(self):
        assert self.fresh
        self.fresh = False
"""
    remote, survey = one(source)
    assert take(remote, survey.benchmarks[0]).calls > 1


def test_a_module_that_never_ends_importing_is_lost(one):
    _, survey = one("import time\nwhile True:\n    time.sleep(1)\n")
    assert "still importing after 1 s" in survey.lost["benchmarks.bench"]


def test_a_suite_that_is_not_there_is_lost_by_name(session):
    survey = Remote(session, benchmark_dir="benchmarks").survey(basenames=set(), limit=1, budget=5)
    assert set(survey.lost) == {"benchmarks"}


def test_an_interpreter_that_does_not_answer_is_a_failure(session):
    session.python = shutil.which("false")
    with pytest.raises(ItemFailure) as failure:
        Remote(session, benchmark_dir="benchmarks").survey(basenames=set(), limit=1, budget=5)
    assert failure.value.kind == "benchmarks_fail"


def test_files_are_laid_and_read_byte_by_byte(session):
    remote = Remote(session, benchmark_dir="benchmarks")
    remote.write({"benchmarks/new/data.bin": bytes(range(256))})
    assert remote.read(["benchmarks/new/data.bin", "not/there"]) == {"benchmarks/new/data.bin": bytes(range(256))}


def test_the_archive_is_the_same_every_time():
    assert harness_archive() == harness_archive()


def test_the_harness_is_written_in_python_3_7():
    for file in resources.files("formulacode_dagster.measurement").joinpath("harness").iterdir():
        if file.name.endswith(".py"):
            ast.parse(file.read_text(), feature_version=(3, 7))


def other_interpreters():
    """One CPython of each version that the harness must run on, as far as this machine has them."""
    folders = [Path(folder) for folder in os.environ["PATH"].split(":")]
    folders += (Path.home() / ".pyenv" / "versions").glob("3.*/bin")
    for minor in range(7, 15):
        for folder in folders:
            python = folder / f"python3.{minor}"
            if python.exists() and subprocess.run([python, "-c", ""], capture_output=True).returncode == 0:
                yield str(python)
                break


def test_every_interpreter_of_this_machine_runs_it(session, lay):
    lay(Path(session.repository), {"benchmarks/bench.py": "def time_it():\n    pass\n"})
    shutil.copytree(Path(asv_runner.__file__).parent, Path(session.repository, "asv_runner"))
    tried = 0
    for python in other_interpreters():
        session.python = python
        remote = Remote(session, benchmark_dir="benchmarks")
        survey = remote.survey(basenames=set(), limit=5, budget=10)
        assert isinstance(take(remote, survey.benchmarks[0]), Timed)
        tried += 1
    assert tried
