"""The sample repositories, generated once for the whole run. Read only: who changes them makes their own."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

import pytest

from formulacode_dagster.sources.offline.side_file import SIDE_FILE, SideFile
from sandbox.samples import GeneratedPullRequest, SampleSet, generate
from sandbox.samples.generate import STAMP
from tests.support.sampling import sampled
from tests.support.sharing import RunFolder

DEMO = (
    # the repository of the documentation, a fork of it, and an unmaintained one
    *("sample-org/gridpath", "dmoreau/gridpath", "sample-org/pairheap"),
    *sampled(("signal-kit/rollwin", "numeric-samples/tilemath", "loomworks/wordloom"), most=1, of="demo"),
)
"""The repositories that the demo of a run goes through: the longest chain of all that it does."""


@pytest.fixture(scope="session")
def samples(run_folder: RunFolder) -> SampleSet:
    """The sample repositories."""
    return generate(run_folder.path / "samples")


def lay_samples(
    samples: SampleSet,
    folder: Path,
    names: Iterable[str],
    *,
    gone: Collection[str] = (),
    lay: Callable[[Path, Path], object] = os.symlink,
) -> None:
    """Make *folder* one that `generate` leaves as it is, with only these samples: links to them, or results of *lay*.

    Of those *gone* only the search index knows.
    """
    told = SideFile.read(samples.folder).repositories
    kept = {name: told[name].model_copy(update={"is_gone": name in gone}) for name in names}
    for name in kept:
        laid = folder / f"{name}.git"
        laid.parent.mkdir(parents=True, exist_ok=True)
        lay(samples.repository(name), laid)
    (folder / SIDE_FILE).write_text(SideFile(repositories=kept).model_dump_json(exclude_defaults=True))
    heads = {name: samples.heads[name] for name in kept}
    landed = tuple(each for each in samples.pull_requests if each.item.partition("#")[0] in kept)
    stamp = samples.model_copy(update={"heads": heads, "pull_requests": landed})
    (folder / STAMP).write_text(stamp.model_dump_json())


def pull_request_of(samples: SampleSet, item: str) -> GeneratedPullRequest:
    return next(pull_request for pull_request in samples.pull_requests if pull_request.item == item)
