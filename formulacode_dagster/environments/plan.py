"""The environment of one pull request, from what its repository declares at the base commit."""

from __future__ import annotations

from collections.abc import Sequence

from formulacode_dagster.git.reader import CommitReader
from formulacode_dagster.models.environment import Environment
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.models.recipe import Fix

from . import interpreter
from .asv_config import AsvConfig
from .commands import read_commands
from .declared import gather, read_metadata
from .fixes import add_requirements, constraints_of, source_of, step_below
from .lock import digest
from .locking import lock_best
from .matrix import choose, pythons_of
from .metadata import ProjectMetadata
from .package import find_import_name, find_package_root
from .resolver import Resolver
from .suites import find_suite
from .tree import Tree

_OF_THE_MACHINE = frozenset(
    {"CC", "CXX", "FC", "F77", "F90", "LD", "HOME", "LD_LIBRARY_PATH", "LD_PRELOAD", "PATH", "PYTHONHOME", "PYTHONPATH"}
)
"""Variables that name compilers and folders; those of the image are its own."""


def plan_environment(
    reader: CommitReader,
    pr: PullRequest,
    *,
    month: Month,
    interpreters: frozenset[str] | None,
    resolver: Resolver,
    fixes: Sequence[Fix] = (),
) -> Environment:
    """Plan and pin the environment of *pr*. *interpreters* are the `3.x` versions the engine has; None means any.

    What *fixes* require joins the declarations, their constraints bound the lock, and each `step_down` takes away the
    interpreter that would have been used.

    Raises Rejection (`no_suite`), ItemFailure (`asv_config`, `package_root`, `interpreter`, `lock`, `timeout`) and
    OutsideSystemError when the package index does not answer.
    """
    base = Tree(reader, pr.change.base_sha)
    suite = find_suite(reader, pr.change.base_sha, pr.facts.merge_commit_sha)
    config = suite.config
    commands = read_commands(base, config)
    root = find_package_root(base, config, installed_folder=commands.package_folder)
    metadata = read_metadata(base, root.folder)
    own_name = metadata.name.value if metadata.name is not None else config.project
    ladder = interpreter.climb(_declared_pythons(metadata, config), at=pr.facts.merged_at, available=interpreters)

    choices = {python: choose(config, python) for python in ladder.pythons}
    wanted = {
        python: add_requirements(gather(metadata, commands, choice.declarations, own_name=own_name), fixes)
        for python, choice in choices.items()
    }
    constraints = constraints_of(fixes)
    locked = lock_best(resolver, wanted, exclude_newer=pr.facts.merged_at, constraints=constraints)
    rungs, stepped_down = wanted, []
    for fix in fixes:
        if fix.step_down:
            stepped_down.append(f"{locked.python} is stepped down from by {source_of(fix)} ({fix.evidence})")
            rungs = step_below(rungs, locked.python, fix)
            locked = lock_best(resolver, rungs, exclude_newer=pr.facts.merged_at, constraints=constraints)
    choice = choices[locked.python]
    variables, left_out = _portable({**choice.environment, **commands.environment})
    return Environment(
        month=month.key,
        repository_id=pr.facts.repository_id,
        number=pr.facts.number,
        python=locked.python,
        python_reason=ladder.reason_for(locked.python, stepped_down=(*stepped_down, *locked.stepped_down)),
        python_candidates=ladder.pythons,
        package_root=root.folder,
        package_name=find_import_name(base, root.folder, metadata),
        config_path=config.path,
        benchmark_dir=config.benchmark_dir,
        requirements=locked.runtime,
        build_requirements=locked.build,
        build_environment=variables,
        run_environment=_portable({**choice.environment, **choice.run_environment})[0],
        commands=commands.steps,
        fixes=tuple(fixes),
        system_packages=choice.system_packages,
        suite_sha=suite.tree.commit,
        notes=(
            f"package root {root.folder}: {root.reason}",
            *suite.notes,
            *choice.notes,
            *commands.notes,
            *left_out,
            *locked.notes,
        ),
        dropped=(*wanted[locked.python].dropped, *choice.dropped, *locked.dropped),
        lock=locked.resolution.lock,
        lock_sha256=digest(locked.resolution.lock),
        resolver=locked.resolution.resolver,
        exclude_newer=pr.facts.merged_at,
    )


def _portable(variables: dict[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The variables that mean the same in the image, and a note for each of the others."""
    kept = {name: value for name, value in variables.items() if name not in _OF_THE_MACHINE}
    notes = (
        f"variable {name}={variables[name]} is left out: it belongs to the maintainers' machine" for name in variables
    )
    return kept, tuple(note for name, note in zip(variables, notes, strict=True) if name not in kept)


def _declared_pythons(metadata: ProjectMetadata, config: AsvConfig) -> interpreter.Declared:
    requires = metadata.requires_python
    return interpreter.Declared(
        requires_python=requires.value if requires is not None else "",
        requires_python_source=requires.source if requires is not None else "",
        asv_pythons=pythons_of(config),
        asv_source=f"{config.path}:pythons",
        classifiers=metadata.classifiers or (),
        classifiers_source=metadata.classifiers_source,
    )
