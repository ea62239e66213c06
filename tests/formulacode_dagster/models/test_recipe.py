"""Valid and invalid builds."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from formulacode_dagster.models.recipe import Command, OnFailure


def test_a_command_that_swallows_failures_cannot_be_written() -> None:
    with pytest.raises(ValidationError, match="hides failures"):
        Command(argv=("bash", "-c", "make || true"), on_failure=OnFailure.STOP, source="test")


def test_what_a_failure_means_has_to_be_said() -> None:
    with pytest.raises(ValidationError, match="on_failure"):
        Command.model_validate({"argv": ["make"], "source": "test"})
