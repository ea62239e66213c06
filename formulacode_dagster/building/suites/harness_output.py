"""Reads the harness's answers, and how it ended: a suite may make it print anything, or nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from formulacode_dagster.building.engines.protocol import Completed
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.reasons import FailureKind

from .questions import NotTimed, SampledStacks, Timed

TAIL_CHARACTERS = 4000

M = TypeVar("M", bound=BaseModel)


def stacks_of(answer: Mapping[str, Any]) -> SampledStacks:
    """The stacks of one benchmark."""
    frames = [dict(zip(("file", "function", "line"), frame, strict=True)) for frame in answer["frames"]]
    stacks = [dict(zip(("frames", "seconds"), stack, strict=True)) for stack in answer["stacks"]]
    told = {name: answer[name] for name in ("calls", "seconds", "inside", "elsewhere")}
    return parsed(SampledStacks, {**told, "frames": frames, "stacks": stacks})


def sample_of(answer: Mapping[str, object]) -> Timed | NotTimed:
    """The sample of one benchmark, or the reason for its absence."""
    if answer["outcome"] == "timed":
        return parsed(Timed, {name: answer[name] for name in Timed.model_fields})
    wall = float(str(answer["wall"]))
    return NotTimed(kind=str(answer["outcome"]), message=str(answer.get("message", "")), wall=wall)


def ending_of(completed: Completed) -> str:
    """Return the outcome of a benchmark whose process ended with *completed* and printed no answer for it."""
    if completed.timed_out:
        return "timeout"
    return "no_result" if completed.rc == 0 else "crash"


def describe(completed: Completed) -> str:
    """Describe how a command ended, with the end of its standard error."""
    ending = (
        f"timed out after {completed.seconds:.0f} s" if completed.timed_out else f"ended with status {completed.rc}"
    )
    tail = completed.stderr[-TAIL_CHARACTERS:].decode(errors="replace").strip()
    return f"{ending}\n{tail}" if tail else ending


def require_end(completed: Completed, answers: Sequence[Mapping[str, object]], what: str) -> None:
    """Raise ItemFailure (`timeout`, `benchmarks_fail`) unless the harness completed *what*."""
    if completed.timed_out:
        raise ItemFailure(FailureKind.TIMEOUT, f"{what} took too long", log_tail=describe(completed))
    if not answers or answers[-1]["event"] != "end":
        raise ItemFailure(
            FailureKind.BENCHMARKS_FAIL,
            f"{what} broke off",
            why=describe(completed).partition("\n")[0],
            log_tail=describe(completed),
        )


def parsed(model: type[M], answer: Mapping[str, object]) -> M:
    """Parse *answer* as a *model*; raises ItemFailure (`benchmarks_fail`) if it is invalid."""
    try:
        return model.model_validate({name: value for name, value in answer.items() if name != "event"})
    except ValidationError as error:
        raise ItemFailure(FailureKind.BENCHMARKS_FAIL, "the suite's answer is malformed", why=str(error)) from error


def all_names(answers: Iterable[Mapping[str, object]], event: str) -> tuple[str, ...]:
    """Return the names in all answers of an *event*."""
    named = (answer["names"] for answer in answers if answer["event"] == event)
    return tuple(str(name) for names in named if isinstance(names, list) for name in names)
