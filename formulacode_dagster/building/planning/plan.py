"""The environment of one pull request, from its repository's declarations at the base commit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from packaging.utils import canonicalize_name, is_normalized_name

from formulacode_dagster.building.declarations.licenses import license_of
from formulacode_dagster.building.declarations.submodules import choose_submodules
from formulacode_dagster.building.declarations.tree import Tree
from formulacode_dagster.building.suites.commits import Suite, find_suite
from formulacode_dagster.models.environment import DroppedRequirement, Environment
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.recipe import Fix
from formulacode_dagster.sources.git.reader import CommitReader, SubmoduleReader

from . import interpreter
from .availability import Era
from .fixes import add_requirements, constraints_of, only_on, source_of, step_below
from .lock import digest
from .locking import Locked, lock_best
from .repository import ForPython, Repository, read_repository
from .resolution import Resolution
from .resolver import Resolver
from .tests_lock import LockedTests, lock_tests

_OF_THE_MACHINE = frozenset(
    {"CC", "CXX", "FC", "F77", "F90", "LD", "HOME", "LD_LIBRARY_PATH", "LD_PRELOAD", "PATH", "PYTHONHOME", "PYTHONPATH"}
)
"""Variables that name compilers and folders; those of the image are its own."""


def plan_environment(
    reader: SubmoduleReader,
    pr: PullRequest,
    *,
    month: Month,
    interpreters: frozenset[str] | None,
    resolver: Resolver,
    fixes: Sequence[Fix] = (),
) -> Environment:
    """Plan and pin the environment of *pr*. *interpreters* are the `3.x` versions the engine has; None means any.

    The requirements of *fixes* join the declarations, their constraints limit the lock, and each `step_down` removes
    the interpreter that would have been used; a `python` takes its place, if the repository allows it.

    Raises Rejection (`no_suite`), ItemFailure (`package_root`, `interpreter`, `lock`, `timeout`) and
    OutsideSystemError when the package index does not answer.
    """
    declared = _Declared.by(reader, pr, interpreters)
    wanted = {python: add_requirements(chosen.requirements, fixes) for python, chosen in declared.choices.items()}
    own_name = declared.repository.own_name
    era = Era(
        exclude_newer=pr.facts.merged_at,
        settled_at=month.start,
        pythons=tuple(wanted),
        constraints=constraints_of(fixes),
        own=own_name if is_normalized_name(canonicalize_name(own_name)) else "",
    )
    locked = lock_best(resolver, wanted, era=era)
    rungs, stepped_down = wanted, []
    for fix in fixes:
        if fix.step_down:
            stepped_down.append(f"{locked.python} is stepped down from by {source_of(fix)} ({fix.evidence})")
            rungs = step_below(rungs, locked.python, fix)
            locked = lock_best(resolver, rungs, era=era)
        elif fix.python and fix.python != locked.python:
            stepped_down.append(f"{locked.python} is left for {fix.python} by {source_of(fix)} ({fix.evidence})")
            rungs = only_on(wanted, fix)
            locked = lock_best(resolver, rungs, era=era)
    tests = lock_tests(resolver, declared.repository.for_tests, locked, era=era)
    return declared.environment(
        month,
        locked,
        tests,
        fixes=tuple(fixes),
        stepped_down=tuple(stepped_down),
        dropped=wanted[locked.python].dropped,
    )


def unlocked_environment(
    reader: SubmoduleReader, pr: PullRequest, *, month: Month, interpreters: frozenset[str] | None
) -> Environment:
    """Return what `plan_environment` would pin for *pr*, before pinning: for callers that look for available versions.

    Its interpreter is the best that is declared, and its lock empty. Raises as `plan_environment`, but for locks.
    """
    declared = _Declared.by(reader, pr, interpreters)
    python = declared.ranking.pythons[0]
    wanted = declared.choices[python].requirements
    nothing = Locked(
        python=python,
        resolution=Resolution(lock="", pylock="", cut_off=pr.facts.merged_at, resolver=""),
        runtime=tuple(dict.fromkeys(item.text for item in (*wanted.runtime, *wanted.matrix))),
        build=tuple(dict.fromkeys(item.text for item in wanted.build)),
        cut_off=pr.facts.merged_at,
    )
    return declared.environment(month, nothing, LockedTests())


@dataclass(frozen=True)
class _Declared:
    """The declarations of the base commit, for each interpreter it may run on."""

    reader: SubmoduleReader
    pr: PullRequest
    base: Tree
    suite: Suite
    repository: Repository
    ranking: interpreter.RankedInterpreters
    choices: Mapping[str, ForPython]

    @classmethod
    def by(cls, reader: SubmoduleReader, pr: PullRequest, interpreters: frozenset[str] | None) -> _Declared:
        """Raises Rejection (`no_suite`), ItemFailure (`package_root`, `interpreter`)."""
        base = Tree(reader, pr.change.base_sha)
        suite = find_suite(reader, pr)
        repository = read_repository(base, _suites(reader, pr, suite), suite.config)
        ranking = interpreter.rank_interpreters(repository.pythons(), at=pr.facts.merged_at, available=interpreters)
        choices = {python: repository.on(python) for python in ranking.pythons}
        return cls(reader, pr, base, suite, repository, ranking, choices)

    def environment(
        self,
        month: Month,
        locked: Locked,
        tests: LockedTests,
        *,
        fixes: tuple[Fix, ...] = (),
        stepped_down: tuple[str, ...] = (),
        dropped: tuple[DroppedRequirement, ...] = (),
    ) -> Environment:
        """The environment that *locked* and *tests* pin."""
        repository, pr, config = self.repository, self.pr, self.suite.config
        chosen = self.choices[locked.python]
        choice = chosen.choice
        variables, left_out = _portable(
            {**repository.system.environment, **choice.environment, **repository.commands.environment}
        )
        submodules = choose_submodules(
            self.base,
            self.reader.submodules(pr.change.base_sha) if self.base.has(".gitmodules") else {},
            repository.root.folder,
            repository=pr.facts.repository,
            wanted=any(fix.submodules for fix in fixes),
        )
        return Environment(
            month=month.key,
            repository_id=pr.facts.repository_id,
            number=pr.facts.number,
            python=locked.python,
            python_reason=self.ranking.reason_for(locked.python, stepped_down=(*stepped_down, *locked.stepped_down)),
            python_candidates=self.ranking.pythons,
            package_root=repository.root.folder,
            package_name=repository.import_name,
            config_path=config.path,
            benchmark_dir=config.benchmark_dir,
            requirements=locked.runtime,
            build_requirements=locked.build,
            build_environment=variables,
            run_environment=_portable({**choice.environment, **choice.run_environment})[0],
            test_requirements=tests.requirements,
            test_lock=tests.lock,
            commands=repository.commands.steps,
            submodules=submodules.submodules,
            license=license_of(self.base, repository.root.folder),
            fixes=fixes,
            system_packages=tuple(dict.fromkeys((*choice.system_packages, *repository.system.apt_packages))),
            suite_sha=self.suite.tree.commit,
            notes=(
                f"package root {repository.root.folder}: {repository.root.reason}",
                *self.suite.notes,
                *chosen.notes,
                *repository.commands.notes,
                *repository.system.notes,
                *submodules.notes,
                *left_out,
                *locked.notes,
                *tests.notes,
            ),
            dropped=(*dropped, *choice.dropped, *locked.dropped),
            lock=locked.resolution.lock,
            lock_sha256=digest(locked.resolution.lock),
            build_lock=locked.build_resolution.lock if locked.build_resolution is not None else "",
            pylock=locked.resolution.pylock,
            resolver=locked.resolution.resolver,
            exclude_newer=locked.cut_off,
            later_projects=locked.later,
        )


def _portable(variables: dict[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The variables that mean the same in the image, and a note for each of the others."""
    kept = {name: value for name, value in variables.items() if name not in _OF_THE_MACHINE}
    notes = (
        f"variable {name}={variables[name]} is left out: it belongs to the maintainers' machine" for name in variables
    )
    return kept, tuple(note for name, note in zip(variables, notes, strict=True) if name not in kept)


def _suites(reader: CommitReader, pr: PullRequest, suite: Suite) -> tuple[Tree, ...]:
    """Sources of benchmarks: the suite of the plan, and that of the merge if the pull request touches it."""
    folder = f"{suite.config.benchmark_dir}/"
    touched = any(file.path.startswith(folder) for file in pr.change.files)
    merge = (Tree(reader, pr.facts.merge_commit_sha),) if touched else ()
    return (suite.tree, *merge)
