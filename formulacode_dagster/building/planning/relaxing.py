"""The order in which requirements are given up if the declarations have no common solution."""

from __future__ import annotations

from formulacode_dagster.building.declarations.declared_requirement import DeclaredRequirement, requirement_name
from formulacode_dagster.building.declarations.python_source import parse_requirement
from formulacode_dagster.building.declarations.requirements import Requirements
from formulacode_dagster.building.engines.failures import last_line
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.environment import DroppedRequirement

from .availability import Effort
from .resolution import Refusal


class RelaxedRequirements(Frozen):
    """The requirements, possibly with something given up."""

    requirements: Requirements
    dropped: tuple[DroppedRequirement, ...] = ()
    notes: tuple[str, ...] = ()

    def loosenable(self, effort: Effort) -> frozenset[str]:
        """Projects whose version the matrix pins, which may be given up once no interpreter has wheels for all."""
        pinned = (item for item in self.requirements.matrix if parse_requirement(item.text).specifier)
        return frozenset(requirement_name(item.text) for item in pinned) if effort else frozenset()


def relaxed(current: RelaxedRequirements, refusal: Refusal, effort: Effort) -> RelaxedRequirements | None:
    """Return *current* with the next requirement given up after *refusal*; None if there is none.

    First a build requirement on a package of the runtime, against which it is then built; then the versions that asv's
    matrix pins. With more effort, unreadable requirements and single ones without any solution are left out.
    """
    if refusal.lacking:
        return _loosened(current, frozenset(refusal.lacking) & current.loosenable(effort))
    parts = current.requirements
    everything = (*parts.runtime, *parts.matrix, *parts.build)
    broken = [item for item in everything if requirement_name(item.text) in refusal.unbuildable]
    if broken and effort:
        return _without(current, broken, f"its source distribution does not build: {_reason(refusal)}")
    spoken = frozenset(map(requirement_name, refusal.blamed))
    running, texts = parts.runtime_names(), {item.text for item in parts.runtime}
    build = [item for item in parts.build if item.text not in texts and requirement_name(item.text) in spoken]
    needless = [item for item in build if _stands_in_for(item) in running]
    if needless:
        return _without(current, needless, "contradicts a runtime requirement, which is used for the build instead")
    looser = _loosened(current, spoken)
    if looser is not None or effort is Effort.AS_OF_DATE:
        return looser
    alone = [item for item in everything if item.text in refusal.blamed]
    if len({item.text for item in alone}) == 1:
        return _without(current, alone, f"has no solution: {_reason(refusal)}")
    return None


def _reason(refusal: Refusal) -> str:
    return last_line(refusal.log_tail)[:300]


def _loosened(current: RelaxedRequirements, names: frozenset[str]) -> RelaxedRequirements | None:
    parts = current.requirements
    pinned = [i for i in parts.matrix if requirement_name(i.text) in names and parse_requirement(i.text).specifier]
    if not pinned:
        return None
    notes = (f"{item.source}: {item.text} has no solution, any version was allowed" for item in pinned)
    loose = tuple(
        DeclaredRequirement(text=parse_requirement(item.text).name, source=item.source) if item in pinned else item
        for item in parts.matrix
    )
    return RelaxedRequirements(
        requirements=parts.model_copy(update={"matrix": loose}),
        dropped=current.dropped,
        notes=(*current.notes, *notes),
    )


def _without(current: RelaxedRequirements, items: list[DeclaredRequirement], reason: str) -> RelaxedRequirements:
    parts = current.requirements
    kept = {
        "runtime": tuple(item for item in parts.runtime if item not in items),
        "matrix": tuple(item for item in parts.matrix if item not in items),
        "build": tuple(item for item in parts.build if item not in items),
    }
    return RelaxedRequirements(
        requirements=parts.model_copy(update=kept),
        dropped=(*current.dropped, *(item.dropped(reason) for item in dict.fromkeys(items))),
        notes=current.notes,
    )


def _stands_in_for(build: DeclaredRequirement) -> str:
    name = requirement_name(build.text)
    return "numpy" if name == "oldest-supported-numpy" else name
