"""All that a repository declares about building and benchmarking it, read once and chosen from per interpreter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from formulacode_dagster.building.declarations.asv_config import AsvConfig
from formulacode_dagster.building.declarations.benchmark_data import choose_data
from formulacode_dagster.building.declarations.commands import CommandReading, read_commands
from formulacode_dagster.building.declarations.conda_environment import CondaEnvironment, named_environment
from formulacode_dagster.building.declarations.declared_requirement import (
    DeclaredRequirement,
    requirement_name,
    validate,
)
from formulacode_dagster.building.declarations.imports import imports_below
from formulacode_dagster.building.declarations.matrix import MatrixChoice, choose, pythons_of
from formulacode_dagster.building.declarations.metadata.project import ProjectMetadata, Sourced
from formulacode_dagster.building.declarations.needs_of_tests import choose_for_tests
from formulacode_dagster.building.declarations.optional import OptionalGroup, choose_optional, optional_groups
from formulacode_dagster.building.declarations.package import PackageRoot, find_import_name, find_package_root
from formulacode_dagster.building.declarations.requirements import Requirements, gather, read_metadata, with_optional
from formulacode_dagster.building.declarations.system_needs import SystemNeeds, read_system_needs
from formulacode_dagster.building.declarations.tree import Tree

from . import interpreter


@dataclass(frozen=True)
class ForPython:
    """Requirements on one interpreter."""

    requirements: Requirements
    choice: MatrixChoice
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Repository:
    """The declarations at one commit, and the imports of the suite."""

    config: AsvConfig
    commands: CommandReading
    root: PackageRoot
    metadata: ProjectMetadata
    own_name: str
    import_name: str
    optional_groups: tuple[OptionalGroup, ...]
    imports: Mapping[str, str]
    environment_file: tuple[str, CondaEnvironment] | None
    system: SystemNeeds
    for_tests: tuple[DeclaredRequirement, ...]

    def pythons(self) -> interpreter.DeclaredPythons:
        """Return the interpreters named in the three places; a conda environment file that asv uses fixes its own."""
        asv: Sourced[tuple[str, ...]] = Sourced(value=pythons_of(self.config), source=f"{self.config.path}:pythons")
        if self.environment_file is not None and self.environment_file[1].python:
            asv = Sourced(value=(self.environment_file[1].python,), source=self.environment_file[0])
        return interpreter.DeclaredPythons(
            requires_python=self.metadata.requires_python,
            asv=asv if asv.value else None,
            classifiers=self.metadata.classifiers,
        )

    def on(self, python: str) -> ForPython:
        """Return the package's requirements, asv's matrix for *python*, and the benchmarks' further imports."""
        choice = choose(self.config, python)
        if self.environment_file is not None:
            choice = _joined(choice, self.environment_file[1])
        plain = gather(
            self.metadata,
            self.commands,
            choice.requirements,
            own_name=self.own_name,
            variables={**choice.environment, **self.commands.environment},
        )
        own_names = {self.import_name, *self.metadata.import_names, self.own_name.replace("-", "_")}
        optional = choose_optional(self.imports, plain.runtime_names(), self.optional_groups, own_names=own_names)
        data = choose_data(self.imports, plain.runtime_names(), self.optional_groups)
        wanted = dict.fromkeys((*optional.requirements, *data.requirements))
        requirements = with_optional(plain, wanted, own_name=self.own_name)
        have = {requirement_name(item.text) for item in requirements.build}
        tools = tuple(item for item in self.system.build_requirements if requirement_name(item.text) not in have)
        return ForPython(
            requirements=requirements.model_copy(
                update={"build": (*requirements.build, *tools), "floors": data.floors}
            ),
            choice=choice,
            notes=(*choice.notes, *optional.notes, *data.notes),
        )


def read_repository(base: Tree, suites: Sequence[Tree], config: AsvConfig) -> Repository:
    """Read the declarations of *base* for the suite of *config*; *suites* are the commits its benchmarks come from.

    Raises ItemFailure (`package_root`).
    """
    commands = read_commands(base, config)
    root = find_package_root(base, config, installed_folder=commands.package_folder)
    metadata = read_metadata(base, root.folder)
    own_name = metadata.name.value if metadata.name is not None else config.project
    imports: dict[str, str] = {}
    for tree in suites:
        imports = {**imports_below(tree, config.benchmark_dir), **imports}
    groups = optional_groups(base, config, metadata, own_name=own_name, package=root.folder)
    return Repository(
        config=config,
        commands=commands,
        root=root,
        metadata=metadata,
        own_name=own_name,
        import_name=find_import_name(
            base,
            root.folder,
            metadata,
            project=config.project,
            imported=dict.fromkeys(name.partition(".")[0] for name in imports),
        ),
        optional_groups=groups,
        imports=imports,
        environment_file=named_environment(base, config),
        system=read_system_needs(base, root.folder, metadata),
        for_tests=choose_for_tests(base, groups, own_name=own_name),
    )


def _joined(choice: MatrixChoice, file: CondaEnvironment) -> MatrixChoice:
    """Return *choice*, completed by *file*: asv overlays its matrix on the file."""
    spoken = {requirement_name(item.text) for item in validate(choice.requirements).accepted}
    rest = [item for item in validate(file.requirements).accepted if requirement_name(item.text) not in spoken]
    return choice.model_copy(
        update={
            "requirements": (*choice.requirements, *rest),
            "dropped": (*choice.dropped, *file.dropped, *validate(file.requirements).dropped),
            "system_packages": tuple(dict.fromkeys((*choice.system_packages, *file.system_packages))),
        }
    )
