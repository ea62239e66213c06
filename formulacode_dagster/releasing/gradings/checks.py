"""Verdict on the gradings of a month."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from formulacode_dagster.models.check import CheckFinding
from formulacode_dagster.models.grading import TaskGrading
from formulacode_dagster.models.release import PublishedImage

Key = tuple[int, int]


def probes_get_nothing(
    gradings: Mapping[Key, TaskGrading], gradable: Collection[Key], published: Sequence[PublishedImage]
) -> CheckFinding:
    """Pass when of each *gradable* task the author's patch got its reward and no probe got any, from its own image.

    Fail also when tasks were graded and none is gradable: then the grader or the machine is at fault.
    """
    digests = {(image.repository_id, image.number): image.digest for image in published}
    offenders = []
    for key in sorted(gradable):
        grading = gradings.get(key)
        if grading is None:
            offenders.append(f"{key} was never graded")
            continue
        offenders += [f"{grading.task_id}: {objection}" for objection in grading.objections]
        if digests.get(key) != grading.image_digest:
            offenders.append(
                f"{grading.task_id} was graded from {grading.image_digest}, published is {digests.get(key)}"
            )
    dropped = [grading for key, grading in gradings.items() if key not in gradable and not grading.is_gradable]
    if not gradable and dropped:
        offenders.append(f"none of {len(dropped)} graded tasks is gradable; first: {dropped[0].objections[0]}")
    unfinished = sum(bool(gradings[key].unfinished) for key in gradable if key in gradings)
    if offenders:
        summary = f"{len(offenders)} objections to the gradings; first: {offenders[0]}"
    elif not gradable:
        summary = "no task was graded"
    else:
        summary = f"the author's patch gets its reward, and no probe any, in all {len(gradable)} graded tasks"
    figures = {"gradable": len(gradable), "left_out": len(dropped), "unfinished": unfinished}
    return CheckFinding.by_offenders(summary, offenders, {name: float(value) for name, value in figures.items()})
