"""Rebuilds an image from its spec and locks, and compares the installed distributions with the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from formulacode_dagster.building.engines.protocol import Engine
from formulacode_dagster.building.engines.scratch import scratch_folder
from formulacode_dagster.building.specs.context import Origins
from formulacode_dagster.building.verification.contents import Listing, listings
from formulacode_dagster.building.verification.facts import gather_facts
from formulacode_dagster.models.base import ProgressReporter
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuiltImage, InstalledDistribution
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.models.reproduction import Reproduction
from formulacode_dagster.sources.git.mirror import MirrorCache

from .differences import compare, compare_toolchains
from .submodules import submodule_mirrors

IMAGE, KEPT = "the image", "its stored record"
Kept = Callable[[InstalledDistribution], Listing | None]
"""Gives the listing that was kept when an image was built; None when it is lost."""


def rebuild(
    engine: Engine,
    image: BuiltImage,
    *,
    cache: MirrorCache,
    kept: Kept,
    item: str,
    progress: ProgressReporter | None = None,
) -> Reproduction:
    """Rebuild the spec of *image* next to it and without a cache, compare, and remove the second image.

    The comparison uses the first image's current content or, if it is gone, its record. Raises ItemFailure
    (`other_engine`) if another engine has built it, (`nothing_kept`) if neither exists; and the build's errors.
    """
    if image.engine is not engine.name:
        raise ItemFailure(
            FailureKind.OTHER_ENGINE,
            f"{image.tag} was built by the {image.engine} engine, and {engine.name} is at work",
            remedy=f"Set FC_ENGINE={image.engine}",
        )
    against, first = _first(engine, image, kept)
    spec = image.spec
    mirror = cache.ensure(spec.repository, commits=(spec.base_sha, spec.anchor_sha))
    for commit in (spec.anchor_sha, spec.base_sha):
        mirror.complete(commit)
    modules = submodule_mirrors(cache, spec.submodules)
    try:
        origins = Origins(mirror.path, {name: module.path for name, module in modules.items()})
        outcome = engine.build(spec, origins, rebuild=True, progress=progress)
        again = {"tag": outcome.tag, "digest": outcome.digest, "location": outcome.location}
        second = installed_in(engine, image.model_copy(update=again))
    finally:
        engine.remove_rebuild(spec)
    return Reproduction(
        month=image.month,
        repository_id=image.repository_id,
        number=image.number,
        item=item,
        tag=image.tag,
        digest=image.digest,
        against=against,
        distributions=len(second),
        files=sum(len(listing.files) for listing in second),
        differences=(*compare(first, second), *compare_toolchains(image.toolchain, outcome.toolchain)),
        seconds=outcome.seconds,
    )


def installed_in(engine: Engine, image: BuiltImage) -> tuple[Listing, ...]:
    """Return the distributions installed in *image*; raises ItemFailure (`image_gone`)."""
    with scratch_folder() as unused:
        return listings(gather_facts(engine.files(image, only_environment=True), objects=unused))


def _first(engine: Engine, image: BuiltImage, kept: Kept) -> tuple[str, Sequence[Listing | InstalledDistribution]]:
    if engine.exists(image):
        return IMAGE, installed_in(engine, image)
    if not image.installed:
        raise ItemFailure(
            FailureKind.NOTHING_KEPT,
            f"{image.tag} is gone, and its distributions were not recorded",
            remedy="Materialize images again for this pull request",
        )
    return KEPT, [kept(distribution) or distribution for distribution in image.installed]
