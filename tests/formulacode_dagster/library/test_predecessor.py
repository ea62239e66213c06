"""Call forms of the predecessor that do more than rename."""

from __future__ import annotations

import asyncio

import pytest

from formulacode_dagster.library.predecessor import PR, DockerContext, SynthesizeImagesRunner, Synthesizer
from formulacode_dagster.library.synthesizer import NotPlannedError
from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError
from formulacode_dagster.models.reasons import FailureKind


def test_a_pull_request_without_an_image_stops_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ends: dict[int, Exception | None] = {
        1: NotPlannedError("acme/tiny#1 has no environment"),
        2: ItemFailure(FailureKind.MIRROR, "no commit"),
        3: None,
    }
    made = DockerContext({})

    def run(_self: Synthesizer, _owner: str, _repo: str, number: int, **_: object) -> DockerContext:
        if (end := ends[number]) is not None:
            raise end
        return made

    monkeypatch.setattr(Synthesizer, "run", run)
    prs = [PR(repository="acme/tiny", issue_number=number) for number in ends]
    runner = SynthesizeImagesRunner(Synthesizer())
    assert asyncio.run(runner.run(prs)) == [None, None, made]
    assert [record.message for record in caplog.records if record.name.endswith("predecessor")] == [
        "acme/tiny#1 has no image: acme/tiny#1 has no environment",
        "acme/tiny#2 has no image: no commit",
    ]
    ends[2] = OutsideSystemError("docker", "it does not answer")
    with pytest.raises(OutsideSystemError, match="does not answer"):
        asyncio.run(runner.run(prs))
    ends[2] = ConfigurationError("there is no agent 'copilot'")
    with pytest.raises(ConfigurationError, match="copilot"):
        asyncio.run(runner.run(prs))
