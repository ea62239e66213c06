"""The demo, run once as a user runs it, shared by the tests of what it leaves.

It is that of the wheel, in an environment that holds nothing else, run from an empty folder with the `process` engine.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from formulacode_dagster.operating.store.database import Database
from formulacode_dagster.operating.store.embedded import start_embedded
from sandbox.samples import SampleSet
from tests.support.command_line import FcData
from tests.support.demo import Demo, Served, ServeUi, serve_ui_of
from tests.support.samples import DEMO, lay_samples
from tests.support.sampling import TAKES_ALL
from tests.support.sharing import RunFolder
from tests.support.wheel import install_wheel


@pytest.fixture(scope="session")
def fc_data(run_folder: RunFolder) -> Path:
    """The command of the installed wheel, one for the whole run: to install and first to run it takes half a minute."""
    return run_folder.once("wheel", install_wheel) / "environment" / "bin" / "fc-data"


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory, fc_data: Path, samples: SampleSet) -> Demo:
    """The first run of the demo; in the home that FC_TEST_DEMO_HOME names, where tests are being written.

    Of the sample repositories there are those of `DEMO`; a home that was kept has those of the seed it was made with.
    """
    kept = os.environ.get("FC_TEST_DEMO_HOME")
    home = Path(kept).absolute() if kept else tmp_path_factory.mktemp("demo") / "home"
    if not TAKES_ALL and not home.exists():
        lay_samples(samples, home / "sandbox" / "repositories", DEMO, lay=shutil.copytree)
    unused = Demo(fc_data, home, "", 0)
    first = unused.fc_data("demo", timeout=1500)
    return Demo(fc_data, home, re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", first.stdout + first.stderr), first.returncode)


@pytest.fixture(scope="session")
def serve_ui() -> ServeUi:
    """`with serve_ui(demo, NAME=value) as served`: the UI over a home, ended by SIGTERM."""
    return serve_ui_of


@pytest.fixture(scope="session")
def ui(demo: Demo) -> Iterator[Served]:
    """The UI over the demo's home, one for all tests."""
    with serve_ui_of(demo) as served:
        yield served
    assert served.process.returncode == 0, served.log.read_text()[-3000:]


@pytest.fixture
def new_home(tmp_path: Path, fc_data: Path) -> Demo:
    """A home in which nothing was run yet."""
    return Demo(fc_data, tmp_path / "home", "", 0)


@pytest.fixture(scope="session")
def demo_database(demo: Demo) -> Iterator[Database]:
    """The database the demo left."""
    database = Database(start_embedded(demo.home / "postgres"))
    yield database
    database.close()


@pytest.fixture
def call_in_demo(demo: Demo, demo_database: Database, call_fc_data: FcData) -> FcData:
    """`call_fc_data(*arguments, **settings)` in the home that the demo left."""
    url = demo_database.engine.url.render_as_string(hide_password=False)
    return partial(call_fc_data, **demo.environment, FC_DATABASE_URL=url)
