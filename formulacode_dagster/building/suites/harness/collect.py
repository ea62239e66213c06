"""Collecting the repository's own tests with pytest, without running one."""

from __future__ import annotations

import importlib
import importlib.util
import os
import shutil
import sys
import sysconfig
import tempfile
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import suite

if TYPE_CHECKING:
    from .answers import Emit

SOURCE_FOLDERS = ("", "src", "lib", "python", "source")
MESSAGE_CHARACTERS = 3000
RUN_OPTIONS = ("-qqq", "--tb=short", "--assert=plain", "-p", "no:cacheprovider")
SINCE_3_0 = (
    # older ones never stopped at a module that cannot be collected
    "--continue-on-collection-errors",
    # The configuration's options may need plugins that only running requires, or that newer versions forbid.
    *("-o", "addopts=", "-o", "filterwarnings=", "-o", "required_plugins=", "-o", "minversion="),
)
SINCE_3_1 = ("-W", "ignore")


def run_options(version: str) -> list[str]:
    """Return the pytest options of *version*, by its changelog of when each option was added.

    Paths have to come before: `-o` took all that followed before pytest 3.3.
    """
    release = tuple(int(part) for part in version.split(".")[:2])
    return [*RUN_OPTIONS, *(SINCE_3_0 if release >= (3, 0) else ()), *(SINCE_3_1 if release >= (3, 1) else ())]


def collect(request: dict[str, Any], emit: Emit) -> None:
    """Collect from `folder`, leaving out those `ignored`; report every module, collected or not."""
    lay_built_files(request["folder"], request["packages"])
    os.dup2(2, 1)
    provide_pytest(request)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    os.chdir(request["folder"])
    pytest = importlib.import_module("pytest")
    listener = Listener(emit)
    ignored = [f"--ignore={path}" for path in request["ignored"]]
    status = 1
    try:
        status = int(pytest.main(["--collect-only", *ignored, *run_options(pytest.__version__)], plugins=[listener]))
    except BaseException:  # noqa: BLE001 - a plugin may raise anything before pytest is there to report it
        emit(event="failed", name="plugins", message=suite.failure_message())
    emit(event="collected", tests=listener.tests, status=status, pytest=pytest.__version__)


class Listener:
    """A plugin that reports collected modules."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._modules: set[str] = set()
        self.tests = 0

    def pytest_itemcollected(self, item: Any) -> None:
        """One more test, perhaps the first of its module."""
        self.tests += 1
        module = item.nodeid.partition("::")[0]
        if module not in self._modules:
            self._modules.add(module)
            self._emit(event="module", name=module)

    def pytest_collectreport(self, report: Any) -> None:
        """A module, class or folder skips itself, or could not be looked through."""
        if report.failed:
            self._emit(event="failed", name=report.nodeid, message=str(report.longrepr)[-MESSAGE_CHARACTERS:])
        elif report.skipped:
            self._emit(event="skipped", name=report.nodeid)


def provide_pytest(request: dict[str, Any]) -> None:
    """Make pytest importable: the environment's own, that of the image's tests, else the one in `collector`, if any."""
    if os.path.isdir(request["tests"]):
        sys.path.append(request["tests"])
        # processes that tests start must find it as well
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), request["tests"]]))
    if importlib.util.find_spec("pytest") is not None or "collector" not in request:
        return
    place = tempfile.mkdtemp(prefix="fc-collector-")
    with zipfile.ZipFile(request["collector"]) as archive:
        archive.extractall(place)
    sys.path.append(place)
    importlib.invalidate_caches()
    # Without a pytest of its own, an environment has no plugins that fit this one.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"


def lay_built_files(folder: str, packages: list[str]) -> None:
    """Next to the sources of the *packages*, copy files that only the build made: compiled modules, written versions.

    Tests that live inside the package are part of it, and not always installed with it. So all take the package from
    the checkout, which was never built in place.
    """
    for installed in {sysconfig.get_paths()["purelib"], sysconfig.get_paths()["platlib"]}:
        for package in packages:
            for above in SOURCE_FOLDERS:
                built, sources = Path(installed, package), Path(folder, above, package)
                if built.is_dir() and sources.is_dir():
                    _lay_missing(built, sources)
                    sys.path.insert(0, str(sources.parent))


def _lay_missing(built: Path, sources: Path) -> None:
    for path in built.rglob("*"):
        into = sources / path.relative_to(built)
        if path.is_file() and path.suffix != ".pyc" and not into.exists() and not into.is_symlink():
            into.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(str(path), str(into))
