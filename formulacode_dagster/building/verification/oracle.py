"""The verification `oracle_absent`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from formulacode_dagster.building.engines.files import Area
from formulacode_dagster.models.image import Verification

from .facts import ImageFacts
from .origin import GroundTruth
from .results import result_of

_BORROWING = ".git/objects/info/alternates"


def oracle_absent(
    facts: ImageFacts,
    truth: GroundTruth,
    objects: Iterable[str],
    lines: frozenset[bytes],
    from_index: Collection[tuple[Area, str]] = (),
    local: Mapping[str, str] | None = None,
) -> Verification:
    """The image holds nothing of the pull request's own change.

    No object of its repository is beyond the base's history, no file equals one that the change made, and no
    distinctive line that the change adds is in a file outside the base and the wheels of a lock (*from_index*). No
    other repository holds one of the change's files or commits, no branch or log of the checkout's own names one of
    those, and nothing is a newer release of the installed package (*local*, versions by canonical name).
    """
    problems = [f"object {sha} is not in the history of the base" for sha in sorted(set(objects) - truth.reachable)]
    if _BORROWING in facts.files[Area.REPOSITORY]:
        problems.append("the object store borrows from another")
    for area in Area:
        for path, fact in facts.files[area].items():
            if solved := truth.solution.get(fact.blob) or truth.solution.get(fact.unix_blob):
                problems.append(f"{area}: {path} is {solved} as changed by the pull request")
    problems += _with_lines(facts, truth, from_index)
    commits = dict.fromkeys(truth.commits, "a commit")
    problems += facts.elsewhere.problems({**truth.solution, **commits}, local or {})
    for (area, path), text in facts.texts.items():
        if area is Area.REPOSITORY and path.startswith(".git/"):
            problems += [f"{area}: {path} names the commit {sha}" for sha in sorted(truth.commits) if sha in text]
    return result_of(
        "oracle_absent",
        problems,
        f"nothing after the base; {truth.changed} changed files are as before, {len(lines)} lines are nowhere",
    )


def _with_lines(facts: ImageFacts, truth: GroundTruth, from_index: Collection[tuple[Area, str]]) -> Iterator[str]:
    at_base = {
        key: lines for key, lines in facts.scan.lines.items() if key[0] is Area.REPOSITORY and key[1] in truth.tree
    }
    lines_at_base = {line for lines in at_base.values() for line in lines}
    for key, lines in facts.scan.lines.items():
        if key not in at_base and key not in from_index and (telling := lines - lines_at_base):
            yield f"{key[0]}: {key[1]} holds {len(telling)} lines added by the pull request"
