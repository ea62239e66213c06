"""The interpreter of a session: an environment with what runs a suite and its tests, as an image has one.

That of this project has two hundred packages, and asv_runner reads about each when it starts.
"""

from __future__ import annotations

import venv
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.support.sharing import RunFolder

PACKAGES = ("asv_runner", "pytest", "pluggy", "iniconfig", "packaging", "pygments")


@pytest.fixture(scope="session")
def suite_python(run_folder: RunFolder) -> str:
    """Path of an interpreter with asv_runner and pytest."""
    return str(run_folder.once("suite-python", _make) / "bin" / "python")


def _make(folder: Path) -> None:
    venv.create(folder, symlinks=True)
    (place,) = folder.glob("lib/python3*/site-packages")
    for name in PACKAGES:
        installed = distribution(name)
        # besides the packages themselves, it has their commands
        for part in {path.parts[0] for path in installed.files or () if path.parts[0] != ".."}:
            (place / part).symlink_to(Path(str(installed.locate_file(part))))
