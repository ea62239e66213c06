import os
import shutil
import tomllib
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
import uv
from packaging.pylock import Pylock

from formulacode_dagster.building.engines import free_space
from formulacode_dagster.building.engines.process.interpreters import installed_interpreters
from formulacode_dagster.building.engines.uv_runner import UvResult
from formulacode_dagster.building.planning.lock import read_lock
from formulacode_dagster.building.planning.resolution import ResolutionRequest, Unsolvable
from formulacode_dagster.building.planning.resolver import Resolver
from formulacode_dagster.models.errors import ItemFailure, OutsideSystemError, SuspectedOutage
from tests.support.declarations import resolve

AT = datetime(2026, 1, 15, tzinfo=UTC)


def pins(resolution):
    return {pin.name: pin.version for pin in read_lock(resolution.lock).pins}


def test_every_pin_is_hashed_and_nothing_of_this_machine_is_in_the_lock(resolver, index, tmp_path):
    resolution = resolve(resolver, ["attrs", "scipy"], python="3.12", exclude_newer=AT)
    assert pins(resolution) == {"attrs": "2.0", "numpy": "1.26", "scipy": "1.0"}
    assert all(pin.hashes for pin in read_lock(resolution.lock).pins)
    assert read_lock(resolution.lock).strange == ()
    for trace in ("127.0.0.1", str(tmp_path), "#", "http"):
        assert trace not in resolution.lock
    assert resolution.resolver.startswith("uv ")


def test_nothing_newer_than_the_cut_off_is_pinned(resolver):
    day_before = datetime(2026, 1, 9, tzinfo=UTC)
    assert pins(resolve(resolver, ["attrs"], python="3.12", exclude_newer=day_before)) == {"attrs": "1.0"}


def test_the_same_question_costs_nothing_and_gives_the_same_bytes(resolver, index, tmp_path):
    first = resolve(resolver, ["attrs", "scipy"], python="3.12", exclude_newer=AT)
    asked, calls = index.requests, resolver.calls
    assert resolve(resolver, ["scipy", "attrs", "attrs"], python="3.12", exclude_newer=AT) == first
    assert (index.requests, resolver.calls) == (asked, calls)
    settings = {"PATH": os.environ["PATH"], "UV_DEFAULT_INDEX": index.url}
    elsewhere = Resolver(tmp_path / "other", environment=settings)
    assert resolve(elsewhere, ["attrs", "scipy"], python="3.12", exclude_newer=AT).lock == first.lock


def test_a_damaged_cache_file_is_resolved_again(resolver, tmp_path):
    first = resolve(resolver, ["attrs"], python="3.12", exclude_newer=AT)
    (kept,) = (tmp_path / "cache" / "locks").rglob("*.json")
    kept.write_text("{half")
    assert resolve(resolver, ["attrs"], python="3.12", exclude_newer=AT) == first
    assert resolver.calls == 2


def test_projects_unknown_at_the_date_are_left_out_with_a_reason(resolver):
    resolution = resolve(resolver, ["attrs", "late>=1", "never-there"], python="3.12", exclude_newer=AT)
    assert pins(resolution) == {"attrs": "2.0"}
    assert {item.requirement for item in resolution.absent} == {"late>=1", "never-there"}
    assert all("2026-01-15" in item.reason for item in resolution.absent)


def test_a_version_that_does_not_exist_is_no_reason_to_drop_the_project(resolver):
    with pytest.raises(Unsolvable) as caught:
        resolve(resolver, ["attrs>=9", "numpy"], python="3.12", exclude_newer=AT)
    assert caught.value.kind == "lock"
    assert caught.value.refusal.blamed == ("attrs>=9",)
    assert "attrs>=9" in caught.value.log_tail


def test_only_builds_take_a_turn_and_a_cached_answer_takes_none(index, uv_cache, tmp_path):
    shutil.copytree(uv_cache, tmp_path / "cache" / "uv")
    settings = {"PATH": os.environ["PATH"], "UV_DEFAULT_INDEX": index.url}
    turns, requests = [], []

    @contextmanager
    def turn():
        requests.append(index.requests)
        yield
        turns.append(index.requests - requests[-1])

    reader = Resolver(tmp_path / "cache", environment=settings, turn=turn, timeout=60)
    asked = {"python": "3.12", "exclude_newer": AT}
    resolve(reader, ["attrs"], **asked)
    assert turns == [], "wheels alone tell what they need"
    for _ in range(2):
        resolve(reader, ["attrs"], **asked, build_sources=True)
        assert len(turns) == 1
    assert turns[0] > 0, "it asks in its turn"


def test_markers_are_judged_for_linux_and_the_interpreter(resolver):
    wanted = ["attrs; platform_system == 'Windows'", "numpy; python_version < '3.10'", "scipy; sys_platform == 'linux'"]
    assert set(pins(resolve(resolver, wanted, python="3.12", exclude_newer=AT))) == {"scipy", "numpy"}


def test_setuptools_has_a_floor_before_it_spoke_pep_517(resolver):
    resolution = resolve(
        resolver, ["setuptools>=40.8.0", "attrs"], python="3.7", exclude_newer=datetime(2018, 6, 1, tzinfo=UTC)
    )
    assert pins(resolution) == {"setuptools": "41.0", "attrs": "1.0"}
    assert "2019-03-01" in resolution.notes[0]


def test_a_wheel_with_refused_metadata_is_pinned_by_known_facts(resolver, index):
    for version, year in (("0.11.0", 2013), ("0.24.2", 2019)):
        index.publish("pandas", version, f"{year}-03-01T00:00:00Z", requires=("pytz (>=2011k)",))
    index.publish("pytz", "2018.9", "2019-01-01T00:00:00Z")
    index.publish("python-dateutil", "2.8.0", "2019-01-01T00:00:00Z")
    index.publish("numpy", "1.16", "2019-01-01T00:00:00Z")
    resolution = resolve(resolver, ["pandas"], python="3.7", exclude_newer=datetime(2019, 4, 16, tzinfo=UTC))
    assert pins(resolution) == {"numpy": "1.16", "pandas": "0.24.2", "python-dateutil": "2.8.0", "pytz": "2018.9"}


def test_the_built_project_is_never_in_its_own_lock(resolver, index):
    index.publish("own", "1.0", "2025-01-01T00:00:00Z", ("numpy<2",))
    index.publish("data-of-own", "1.0", "2025-01-01T00:00:00Z", ("own==1.0", "attrs"))
    wanted = ["data-of-own", "numpy"]
    assert "own" in pins(resolve(resolver, wanted, python="3.12", exclude_newer=AT))
    resolution = resolve(resolver, wanted, python="3.12", exclude_newer=AT, own="Own")
    assert pins(resolution) == {"attrs": "2.0", "data-of-own": "1.0", "numpy": "2.1"}


def test_source_distributions_are_read_only_when_asked_for(resolver, index):
    index.publish_source(
        "old", "1.0", "2018-01-01T00:00:00Z", "from setuptools import setup\nsetup(name='old', version='1.0')\n"
    )
    with pytest.raises(Unsolvable) as caught:
        resolve(resolver, ["old"], python="3.12", exclude_newer=AT)
    assert caught.value.refusal.lacking == ("old",)


def test_what_would_have_to_compile_numpy_first_is_not_read(resolver, index):
    index.publish_source("numpy", "0.9", "2018-01-01T00:00:00Z", "raise SystemExit('numpy was run')\n")
    pyproject = '[build-system]\nrequires = ["setuptools", "numpy==0.9"]\n'
    index.publish_source("fast", "1.0", "2018-01-01T00:00:00Z", files={"pyproject.toml": pyproject})
    with pytest.raises(Unsolvable) as caught:
        resolve(resolver, ["fast"], python="3.12", exclude_newer=AT, build_sources=True)
    assert (caught.value.refusal.unbuildable, caught.value.refusal.lacking) == (("fast",), ())
    assert "numpy was run" not in caught.value.log_tail


@pytest.mark.parametrize("name", ["UV_DEFAULT_INDEX", "HTTPS_PROXY"])
def test_source_distributions_are_not_built_if_settings_hold_credentials(index, tmp_path, name):
    url = index.url.replace("http://", "http://user:hunter2@")
    settings = {"PATH": os.environ["PATH"], "UV_DEFAULT_INDEX": index.url}
    secretive = Resolver(tmp_path, environment={**settings, name: url})
    with pytest.raises(Unsolvable, match="credentials") as caught:
        resolve(secretive, ["attrs"], python="3.12", exclude_newer=AT, build_sources=True)
    assert "hunter2" not in str(caught.value)


def test_a_locale_with_an_at_sign_is_no_credential(index, tmp_path):
    settings = {"PATH": os.environ["PATH"], "UV_DEFAULT_INDEX": index.url, "LC_ALL": "ca_ES.UTF-8@valencia"}
    resolver = Resolver(tmp_path, environment=settings)
    assert pins(resolve(resolver, ["attrs"], python="3.12", exclude_newer=AT, build_sources=True)) == {"attrs": "2.0"}


def test_tokens_of_the_process_do_not_reach_uv(index, tmp_path):
    settings = {"PATH": os.environ["PATH"], "UV_DEFAULT_INDEX": index.url, "GH_TOKENS": "secret", "UV_OFFLINE": "1"}
    resolution = resolve(Resolver(tmp_path, environment=settings), ["attrs"], python="3.12", exclude_newer=AT)
    assert pins(resolution) == {"attrs": "2.0"}


@pytest.mark.parametrize(
    ("answer", "error"),
    [(500, SuspectedOutage), (503, SuspectedOutage), (401, OutsideSystemError), (403, OutsideSystemError)],
)
def test_a_refusing_index_stops_the_stage_and_a_dead_one_is_suspected(resolver, index, answer, error):
    index.answer = answer
    with pytest.raises(error) as caught:
        resolve(resolver, ["attrs"], python="3.12", exclude_newer=AT)
    assert caught.value.system == "package index"


SAYS_SO = """
import sys

sys.stderr.write("error: dns error\\n  cause: Connection refused\\n\\rerror: operation timed out\\n")
sys.stderr.write("error: No space left on device\\nerror: 404 Not Found\\n")
print("error: error sending request for url")
raise SystemExit(1)
"""


def test_network_or_disk_errors_of_a_back_end_fail_its_own_item(resolver, index):
    pyproject = '[build-system]\nrequires = []\nbuild-backend = "b"\nbackend-path = ["."]\n'
    index.publish_source("old", "1.0", "2018-01-01T00:00:00Z", files={"pyproject.toml": pyproject, "b.py": SAYS_SO})
    with pytest.raises(Unsolvable) as caught:
        resolve(resolver, ["old"], python="3.12", exclude_newer=AT, build_sources=True)
    assert caught.value.refusal.unbuildable == ("old",)
    assert "error: dns error" in caught.value.log_tail


@pytest.mark.parametrize(("full_bytes", "error"), [(0, SuspectedOutage), (1 << 60, OutsideSystemError)])
def test_a_disk_that_is_full_by_what_may_be_forged_is_an_outage_only_if_it_is(tmp_path, monkeypatch, full_bytes, error):
    monkeypatch.setattr(free_space, "FULL_BYTES", full_bytes)

    class Forged:
        name = "forged"

        def compile(self, call, **_):
            return UvResult(1, "", "error: Failed to write\n  cause: No space left on device (os error 28)\n")

    resolver = Resolver(tmp_path, environment={"PATH": os.environ["PATH"]}, reading=Forged())
    request = ResolutionRequest(
        requirements=("old",), python="3.12", exclude_newer=datetime(2027, 1, 1, tzinfo=UTC), reads_sources=True
    )
    with pytest.raises(error) as caught:
        resolver.resolve(request)
    assert caught.value.system == "disk"


def test_a_dead_address_of_one_package_is_suspected_and_stops_nothing(resolver, index):
    pyproject = '[build-system]\nrequires = ["gone @ http://127.0.0.1:9/gone-1.0.tar.gz"]\nbuild-backend = "b"\n'
    index.publish_source("old", "1.0", "2018-01-01T00:00:00Z", files={"pyproject.toml": pyproject, "b.py": ""})
    with pytest.raises(SuspectedOutage) as caught:
        resolve(resolver, ["old"], python="3.12", exclude_newer=AT, build_sources=True)
    assert caught.value.kind == "incomplete"


def test_a_refused_project_fails_the_item_and_is_never_dropped(resolver, index):
    index.refused = "attrs"
    with pytest.raises(Unsolvable) as caught:
        resolve(resolver, ["attrs", "numpy", "setuptools"], python="3.12", exclude_newer=AT)
    assert "403" in caught.value.log_tail


def test_an_index_without_setuptools_is_a_wrong_setting(resolver, index):
    index.projects.clear()
    for wanted in (["attrs", "numpy"], ["attrs", "setuptools"]):
        with pytest.raises(OutsideSystemError, match="index settings"):
            resolve(resolver, wanted, python="3.12", exclude_newer=AT)


def test_a_missing_index_is_suspected_and_no_credential_is_shown(tmp_path):
    settings = {"PATH": os.environ["PATH"], "UV_DEFAULT_INDEX": "http://u:hunter2@127.0.0.1:9/simple"}
    dead = Resolver(tmp_path, environment={**settings, "UV_HTTP_RETRIES": "0"})
    with pytest.raises(SuspectedOutage) as caught:
        resolve(dead, ["attrs"], python="3.12", exclude_newer=AT)
    assert "hunter2" not in str(caught.value)
    assert caught.value.remedy


@pytest.mark.slow
def test_an_index_that_never_answers_is_a_timeout(index, tmp_path):
    index.pause = 3
    settings = {"PATH": os.environ["PATH"], "UV_DEFAULT_INDEX": index.url}
    impatient = Resolver(tmp_path, environment=settings, timeout=1)
    with pytest.raises(ItemFailure) as caught:
        resolve(impatient, ["attrs"], python="3.12", exclude_newer=AT)
    assert caught.value.kind == "timeout"


@pytest.mark.network
def test_the_real_index_answers_the_same_twice(tmp_path):
    wanted = ["attrs", "packaging", "numpy>=1.26", "surely-no-such-project-of-ours"]
    first = resolve(Resolver(tmp_path / "a"), wanted, python="3.12", exclude_newer=AT)
    second = resolve(Resolver(tmp_path / "b"), list(reversed(wanted)), python="3.12", exclude_newer=AT)
    assert first.lock == second.lock
    assert pins(first) == {"attrs": "25.4.0", "numpy": "2.4.1", "packaging": "25.0"}
    assert [item.requirement for item in first.absent] == ["surely-no-such-project-of-ours"]


@pytest.mark.network
def test_the_real_index_has_source_distributions_of_another_era(tmp_path):
    at = datetime(2018, 6, 1, tzinfo=UTC)
    resolution = resolve(
        Resolver(tmp_path), ["docopt", "setuptools"], python="3.6", exclude_newer=at, build_sources=True
    )
    assert pins(resolution) == {"docopt": "0.6.2", "setuptools": "40.8.0"}
    assert len(resolution.notes) == 2


@pytest.mark.network
def test_a_source_distribution_is_read_by_its_own_interpreter(tmp_path):
    """bottleneck of 2021 builds against numpy 1.17, which a newer interpreter would compile for hours."""
    here = {minor: found.path for minor, found in installed_interpreters(uv.find_uv_bin()).items()}
    if "3.8" not in here:
        pytest.skip("no Python 3.8 on this machine")
    at = datetime(2021, 8, 2, tzinfo=UTC)
    resolver = Resolver(tmp_path, interpreters=lambda: here, timeout=120)
    resolution = resolve(resolver, ["bottleneck"], python="3.8", exclude_newer=at, build_sources=True)
    assert pins(resolution) == {"bottleneck": "1.3.2", "numpy": "1.21.1"}


def test_a_lock_settles_at_the_earlier_instant_where_that_holds_a_solution(resolver, index):
    index.publish("numpy", "2.2", "2026-01-07T00:00:00Z")
    start, later = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 20, tzinfo=UTC)
    settled = resolve(resolver, ["attrs", "numpy"], python="3.12", exclude_newer=AT, settled_at=start)
    assert pins(settled) == {"attrs": "1.0", "numpy": "2.1"}
    assert settled.cut_off == start
    assert resolve(resolver, ["attrs", "numpy"], python="3.12", exclude_newer=later, settled_at=start) == settled


@pytest.mark.slow
def test_versions_move_only_where_they_must(resolver, index):
    index.publish("numpy", "2.2", "2026-01-07T00:00:00Z")
    index.publish("fresh", "1.0", "2026-01-08T00:00:00Z")
    start = datetime(2026, 1, 1, tzinfo=UTC)
    with pytest.raises(Unsolvable) as caught:
        resolve(resolver, ["attrs>1", "numpy"], python="3.12", exclude_newer=AT, settled_at=start)
    assert caught.value.refusal.late == ("attrs",)
    kept = resolve(resolver, ["attrs", "numpy", "fresh"], python="3.12", exclude_newer=AT, settled_at=start)
    assert pins(kept) == {"attrs": "1.0", "numpy": "2.1", "fresh": "1.0"}
    assert kept.cut_off == AT
    before = resolve(resolver, ["attrs", "numpy", "late"], python="3.12", exclude_newer=AT, settled_at=start)
    assert (pins(before), before.cut_off) == ({"attrs": "1.0", "numpy": "2.1"}, start)


def test_the_pylock_holds_the_same_pins_and_nothing_of_the_index(resolver, index):
    resolution = resolve(resolver, ["attrs", "scipy"], python="3.12", exclude_newer=AT)
    lock = Pylock.from_dict(tomllib.loads(resolution.pylock))
    assert {package.name: str(package.version) for package in lock.packages} == pins(resolution)
    assert "127.0.0.1" not in resolution.pylock
    assert "http" not in resolution.pylock


@pytest.mark.slow
def test_resolving_another_repository_in_between_changes_nothing(resolver, index, tmp_path):
    other = ["attrs<2", "numpy<2", "scipy", "never-there"]
    cold = resolve(resolver, ["attrs", "scipy"], python="3.12", exclude_newer=AT)
    resolve(resolver, other, python="3.12", exclude_newer=AT, constraints=["numpy<2"])
    shutil.rmtree(tmp_path / "cache" / "locks")
    warm = resolve(resolver, ["attrs", "scipy"], python="3.12", exclude_newer=AT)
    shutil.rmtree(tmp_path / "cache")
    assert cold == warm == resolve(resolver, ["attrs", "scipy"], python="3.12", exclude_newer=AT)


def test_the_first_wheel_for_an_interpreter_and_its_day_are_found(resolver, index):
    index.publish("late", "0.5", "2026-03-01T00:00:00Z")
    until = datetime(2026, 6, 1, tzinfo=UTC)
    assert resolver.first_wheel("late", python="3.12", until=until) == (datetime(2026, 3, 1, tzinfo=UTC), True)
    assert resolver.first_wheel("never-there", python="3.12", until=until) is None
    assert resolver.first_wheel("late>0.5", python="3.12", until=AT) is None


def test_a_project_taken_as_sources_leaves_wheels_for_the_others(resolver, index):
    index.publish_source(
        "old", "1.0", "2018-01-01T00:00:00Z", "from setuptools import setup\nsetup(name='old', version='1.0')\n"
    )
    with pytest.raises(Unsolvable) as caught:
        resolve(resolver, ["old", "attrs"], python="3.12", exclude_newer=AT)
    assert caught.value.refusal.lacking == ("old",)


def test_a_question_without_a_solution_is_answered_without_a_call_too(resolver, index):
    first, second = [], []
    for caught in (first, second):
        with pytest.raises(Unsolvable) as info:
            resolve(resolver, ["attrs>=9", "numpy"], python="3.12", exclude_newer=AT)
        caught.append((str(info.value), info.value.refusal.blamed, info.value.log_tail))
    assert first == second
    assert resolver.calls == 1


def test_a_project_that_is_refused_is_asked_for_again(resolver, index):
    index.refused = "attrs"
    with pytest.raises(Unsolvable):
        resolve(resolver, ["attrs", "numpy", "setuptools"], python="3.12", exclude_newer=AT)
    index.refused = ""
    resolution = resolve(resolver, ["attrs", "numpy", "setuptools"], python="3.12", exclude_newer=AT)
    assert pins(resolution)["attrs"] == "2.0"
