"""Evidence for verifications: gathered once, when the first of them needs it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from formulacode_dagster.building.declarations.asv_config import find_config, read_config
from formulacode_dagster.building.declarations.requirements import read_metadata
from formulacode_dagster.building.declarations.tree import Tree
from formulacode_dagster.building.engines.files import Area, ImageConfig
from formulacode_dagster.building.engines.protocol import Engine, Session
from formulacode_dagster.building.engines.scratch import scratch_folder
from formulacode_dagster.building.suites.overlays import BASE_SUITE, SuiteFiles
from formulacode_dagster.building.suites.questions import Survey
from formulacode_dagster.building.suites.reading import SuiteReading, read_suite
from formulacode_dagster.building.suites.remote import BenchmarkSelection, HarnessClient
from formulacode_dagster.models.errors import ItemFailure
from formulacode_dagster.models.image import BuildSpec, BuiltImage
from formulacode_dagster.models.reasons import FailureKind

from .facts import ImageFacts, gather_facts
from .origin import CommitSource, GroundTruth
from .repository import ImageRepository
from .scan import SearchPatterns, own_secrets
from .tamper_scan import Distribution, installed, site_packages

ENOUGH = 1
"""Benchmarks that run, after which no more are tried."""

BENCHMARK_SECONDS = (10.0, 60.0)
"""Seconds for one benchmark, and for one if none completed in the shorter time."""

RUN_SECONDS = 150.0
"""Seconds for all runs of benchmarks, each time."""

IMPORT_SECONDS = 60.0
"""Seconds for the import of one module of the suite, including the package."""


@dataclass(frozen=True)
class Subject:
    """The image to verify, and the facts to verify it by."""

    engine: Engine
    image: BuiltImage
    origin: CommitSource
    run_id: str
    suite: SuiteFiles = BASE_SUITE


@dataclass
class Evidence:
    """Everything known about one image. The session opens when code of the image has to run, and not before."""

    subject: Subject
    folder: Path
    stack: ExitStack = field(repr=False)

    @cached_property
    def _empty_repository(self) -> ImageRepository:
        store = ImageRepository(self.folder / "store.git")
        self.stack.callback(store.close)
        return store

    @cached_property
    def facts(self) -> ImageFacts:
        """Facts from one pass over the image's files."""
        subject = self.subject
        watch = SearchPatterns(own_secrets(os.environ), subject.origin.lines, subject.image.spec.package_name)
        return gather_facts(subject.engine.files(subject.image), objects=self._empty_repository.objects, watch=watch)

    @property
    def repository(self) -> ImageRepository:
        """The image's own objects."""
        _ = self.facts
        return self._empty_repository

    @cached_property
    def image_config(self) -> ImageConfig:
        """The image's configuration besides its files."""
        return self.subject.engine.config(self.subject.image)

    @cached_property
    def truth(self) -> GroundTruth:
        """The host's knowledge about the image."""
        return self.subject.origin.truth(self.repository)

    @cached_property
    def local(self) -> tuple[Distribution, ...]:
        """The distributions that the image's build installed: the package under test."""
        return tuple(distribution for distribution in self._distributions if distribution.is_local)

    @cached_property
    def _distributions(self) -> tuple[Distribution, ...]:
        return tuple(installed(self.facts, Area.ENVIRONMENT, site_packages(self.facts)))

    @cached_property
    def spec(self) -> BuildSpec:
        """How the image was built. An unnamed suite folder is that of the asv configuration, or ``."""
        spec = self.subject.image.spec
        if spec.benchmark_dir:
            return spec
        tree = Tree(self.repository, spec.base_sha)
        path = find_config(tree)
        folder = "" if path is None else read_config(tree, path).benchmark_dir
        return spec.model_copy(update={"benchmark_dir": folder})

    @cached_property
    def base(self) -> Tree:
        """The files of the declared commit, as the image's own objects have them."""
        return Tree(self.repository, self.subject.origin.base_sha)

    @cached_property
    def own_name(self) -> str:
        """Name of the package under test, as planned: the declared one, else asv's project; `` if unknown."""
        declared = read_metadata(self.base, self.spec.package_root).name
        path = find_config(self.base)
        if declared is not None or path is None:
            return declared.value if declared is not None else ""
        try:
            return read_config(self.base, path).project
        except ItemFailure:
            return ""

    @cached_property
    def session(self) -> Session:
        """A place in which the image's code runs."""
        subject = self.subject
        return self.stack.enter_context(subject.engine.session(subject.image, run_id=subject.run_id))

    @cached_property
    def remote(self) -> HarnessClient:
        """The harness in the session."""
        return HarnessClient(self.session, benchmark_dir=self.spec.benchmark_dir, environment=self.spec.run_environment)

    @cached_property
    def survey(self) -> Survey | ItemFailure:
        """The suite: all its benchmarks, some of them run; the reason if the survey broke off.

        Discovering and running is one start of the interpreter and one import of every module, unless all are slow.
        """
        survey: Survey | ItemFailure = ItemFailure(
            FailureKind.BENCHMARKS, f"{self.subject.image.spec.base_sha} contains no asv suite"
        )
        for limit in BENCHMARK_SECONDS if self.spec.benchmark_dir and self.spec.has_suite else ():
            try:
                survey = self.take_survey(limit=limit, budget=RUN_SECONDS, import_limit=IMPORT_SECONDS)
            except ItemFailure as failure:
                return failure
            outcomes = {benchmark.outcome for benchmark in survey.benchmarks}
            if "ran" in outcomes or "timeout" not in outcomes:
                break
        return survey

    def take_survey(self, *, limit: float, budget: float, import_limit: float) -> Survey:
        """The suite with a benchmark run, within the limits of `HarnessClient.survey`. Raises ItemFailure."""
        if self.subject.suite.files is not None:
            self.remote.write(self.subject.suite.files)
        selection = BenchmarkSelection(enough=ENOUGH)
        return self.remote.survey(lines={}, limit=limit, budget=budget, import_limit=import_limit, selection=selection)

    @cached_property
    def reading(self) -> SuiteReading:
        """Content of the suite's files, read on the host at the declared commit."""
        if not self.spec.benchmark_dir:
            return SuiteReading()
        return read_suite(self.base, self.spec.benchmark_dir, self.subject.suite.files)


@contextmanager
def gathering(subject: Subject) -> Iterator[Evidence]:
    """The evidence about *subject*; session, store and folder are gone afterwards."""
    with scratch_folder() as folder, ExitStack() as stack:
        yield Evidence(subject, folder, stack)
