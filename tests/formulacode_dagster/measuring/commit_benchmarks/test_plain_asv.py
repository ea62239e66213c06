"""The arguments that plain asv is given."""

from __future__ import annotations

import pytest

from formulacode_dagster.measuring.commit_benchmarks.plain_asv import PlainAsv
from formulacode_dagster.models.errors import ConfigurationError


@pytest.mark.parametrize("argument", ["--python=3.12", "-E", "--machine", "--set-commit-hash", "--config"])
def test_what_the_image_decides_is_not_the_callers(argument):
    with pytest.raises(ConfigurationError, match="cannot be given"):
        PlainAsv(["--quick", argument], 1, "uv", "run")


def test_interleaved_rounds_are_turns_of_all_commits():
    assert PlainAsv(["--interleave-rounds", "-a", "rounds=3"], 1, "uv", "run").turns == 3
    assert PlainAsv(["--interleave-rounds"], 1, "uv", "run").turns == 2
    assert PlainAsv(["-a", "rounds=3"], 1, "uv", "run").turns == 1
    with pytest.raises(ConfigurationError, match="not a number"):
        PlainAsv(["--interleave-rounds", "-a", "rounds=many"], 1, "uv", "run")
