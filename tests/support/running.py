"""How tests are run: where they write, which come first, which may skip, and what a fast run does without."""

from __future__ import annotations

import gc
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

SLOW_MARKS = ("docker", "network", "slow")
_BUILT = ("make_docker_engine", "engine", "pure_image", "compiled_image")
_PUBLISHED = ("published_schema", "published_rest")
PREFIX = "fc-tests-"
"""Prefix of folders that a later run removes once the process of the id that follows is gone."""
_OWN_FOLDER = pytest.StashKey[Path]()
# nothing listens on the discard port: connections are refused at once
_NOWHERE = "127.0.0.1:9"
# without a network, reading the system's certificates takes longer than most tests
_TRUSTED = Path(__file__).with_name("nobody.pem")
_MEMORY = Path("/dev/shm")
_MEMORY_FOR_FAST = 4 << 30
_MEMORY_FOR_ALL = 8 << 30
_YIELDING = 5
"""Niceness of tests that run in parallel with the demo's, which are the longest chain of a run."""


def out_of_reach(cache: Path) -> dict[str, str]:
    """An environment in which neither a Docker daemon nor a package index answers, nor *cache* for the index."""
    return {
        "DOCKER_HOST": f"tcp://{_NOWHERE}",
        "UV_OFFLINE": "1",
        "UV_CACHE_DIR": str(cache),
        "PIP_NO_INDEX": "1",
        "npm_config_offline": "true",
        "SSL_CERT_FILE": str(_TRUSTED),
    }


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fast",
        action="store_true",
        help=f"leave out what is marked {', '.join(SLOW_MARKS)}; of the rest none finds a daemon or a package index",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give the run a separate folder: parallel runs may start, end and clean up freely."""
    if config.option.basetemp is None:
        _remove_what_failed_runs_left()
        where = memory(_MEMORY_FOR_FAST if config.option.fast else _MEMORY_FOR_ALL)
        config.option.basetemp = tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=where)
        config.stash[_OWN_FOLDER] = Path(config.option.basetemp)
    if config.option.fast:
        os.environ.update(out_of_reach(Path(config.option.basetemp) / "cache"))


def memory(needed: int) -> Path | None:
    """A folder in memory, where a small file costs a fraction of what it does on a disk, in seconds and in CPU time.

    None where it, or the memory behind it, has less than *needed* bytes left, or no program may run from it.
    """
    if not os.access(_MEMORY, os.W_OK):
        return None
    folder = os.statvfs(_MEMORY)
    left = min(folder.f_bavail * folder.f_frsize, _memory_available())
    return _MEMORY if left >= needed and not folder.f_flag & os.ST_NOEXEC else None


def _memory_available() -> int:
    fields = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(fields["MemAvailable"].removesuffix("kB")) << 10


def _remove_what_failed_runs_left() -> None:
    for place in (Path(tempfile.gettempdir()), _MEMORY):
        for folder in place.glob(f"{PREFIX}*-*"):
            if not Path(f"/proc/{folder.name.split('-')[2]}").exists():
                shutil.rmtree(folder, ignore_errors=True)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Two for each core: much of a test is waiting for processes, containers and the database. Of fast tests little is.

    Each worker imports and collects everything by itself.
    """
    return (1 if config.option.fast else 2) * len(os.sched_getaffinity(0))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Look for no garbage in what is imported and collected: all of it stays."""
    gc.disable()
    _import_own_share_first(session.config)
    collected = yield
    gc.freeze()
    gc.enable()
    return collected


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Slow tests begin first, so that no worker ends long after the others, and next to those they share with."""
    if config.option.fast:
        slow = [item for item in items if _is_slow(item)]
        items[:] = [item for item in items if not _is_slow(item)]
        config.hook.pytest_deselected(items=slow)
    for item in items:
        if group := _group_of(item):
            item.add_marker(pytest.mark.xdist_group(group))
    items.sort(key=lambda item: (_uses_demo(item), _is_slow(item)), reverse=True)
    _skip_without_docker(items)


def _group_of(item: pytest.Item) -> str:
    """The tests that one worker runs, since they share what a process makes: a demo, built images, GitHub's schema."""
    if _uses_demo(item):
        return "demo"
    if any(_uses(item, name) for name in _PUBLISHED):
        return "published"
    return item.nodeid.partition("::")[0] if any(_uses(item, name) for name in _BUILT) else ""


def _import_own_share_first(config: pytest.Config) -> None:
    """Import the files of tests, each worker from another one on: what one has compiled, the others read.

    In the order of collection all of them would compile every file and all that it imports, at the same time.
    """
    if worker := getattr(config, "workerinput", None):
        files = [file for arg in config.args for file in sorted(Path(arg).absolute().rglob("test_*.py"))]
        number, workers = int(worker["workerid"].removeprefix("gw")), worker["workercount"]
        for file in from_share_on(files, number, of=workers):
            # the collection reports failures
            with suppress(Exception, pytest.skip.Exception):
                import_module(".".join(file.relative_to(config.rootpath).with_suffix("").parts))


def from_share_on(files: list[Path], number: int, *, of: int) -> list[Path]:
    """All *files*, beginning with share *number*, from 0, of as many as there are workers, and round."""
    first = len(files) * number // of
    return files[first:] + files[:first]


def _uses(item: pytest.Item, fixture: str) -> bool:
    return fixture in getattr(item, "fixturenames", ())


def _uses_demo(item: pytest.Item) -> bool:
    # what the browser has seen asks for the demo's UI only once it knows that there is a browser
    return _uses(item, "demo") or _uses(item, "seen")


def _is_slow(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(name) for name in SLOW_MARKS)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let the demo's tests go first if others run in parallel."""
    alone = "PYTEST_XDIST_WORKER" not in os.environ or item.config.option.fast
    if not alone and not _uses_demo(item) and os.getpriority(os.PRIO_PROCESS, 0) == 0:
        os.nice(_YIELDING)


def _skip_without_docker(items: list[pytest.Item]) -> None:
    """Skip `docker` tests where no daemon answers; in CI that is a failure, so there they run and fail."""
    wanting = [item for item in items if item.get_closest_marker("docker")]
    if not wanting or os.environ.get("CI"):
        return
    if why := _docker_does_not_answer():
        for item in wanting:
            item.add_marker(pytest.mark.skip(reason=f"{why}; run .ci/install-docker or start one"))


def _docker_does_not_answer() -> str:
    if shutil.which("docker") is None:
        return "no docker client on this machine"
    try:
        asked = subprocess.run(["docker", "info"], capture_output=True, timeout=20, check=False)
    except subprocess.TimeoutExpired:
        return "the Docker daemon does not answer within 20 s"
    return "" if asked.returncode == 0 else "no Docker daemon answers"


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI every system is there that a test needs: one that skips all the same fails the run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter is not None else []
    if reporter is not None and os.environ.get("CI") and skipped and session.exitstatus == pytest.ExitCode.OK:
        reporter.write_line(f"{len(skipped)} tests were skipped, which is a failure in CI", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    own = session.config.stash.get(_OWN_FOLDER, None)
    if own is not None and (session.exitstatus == pytest.ExitCode.OK or os.environ.get("CI")):
        session.config.add_cleanup(lambda: shutil.rmtree(own, ignore_errors=True))
