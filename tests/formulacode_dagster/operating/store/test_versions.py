"""All other tests of the store, against a server of each version that is still maintained."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.databases import ANOTHER
from tests.support.documents import ROOT
from tests.support.postgres_versions import VERSIONS, programs_of, server_of
from tests.support.sampling import TAKES_MINUTES

HERE = Path(__file__)


@pytest.mark.slow
@TAKES_MINUTES.with_args(case="Postgres")
@pytest.mark.variant("versions of Postgres", most=1)
@pytest.mark.timeout(600)
@pytest.mark.parametrize("version", VERSIONS)
def test_the_store_holds_in_every_maintained_version(version: str) -> None:
    programs = programs_of(version)
    if programs is None:
        pytest.skip(f"no Postgres {version}; .ci/install-postgres brings it")
    with server_of(programs) as url:
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-n0",
                "-p",
                "no:cacheprovider",
                f"--ignore={HERE}",
                str(HERE.parent),
            ],
            env={**os.environ, ANOTHER: url},
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=500,
            check=False,
        )
    assert done.returncode == 0, done.stdout[-6000:]
    assert re.search(r"\b(\d{3,}) passed", done.stdout), done.stdout[-1000:]
