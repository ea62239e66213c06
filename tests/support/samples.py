"""The sample repositories, generated once for the whole run. Read only: who changes them makes their own."""

from __future__ import annotations

import pytest

from sandbox.samples import SampleSet, generate
from tests.support.sharing import RunFolder


@pytest.fixture(scope="session")
def samples(run_folder: RunFolder) -> SampleSet:
    """The sample repositories."""
    return generate(run_folder.path / "samples")
