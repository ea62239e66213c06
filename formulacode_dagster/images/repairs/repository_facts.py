"""What the rules are told of a repository beside the log: what it declares anywhere, and whether it has submodules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from formulacode_dagster.declarations.declared_requirement import requirement_name, validate
from formulacode_dagster.declarations.tree import Tree
from formulacode_dagster.environments.repository import read_repository
from formulacode_dagster.git.reader import CommitReader
from formulacode_dagster.models.pull_request import PullRequest
from formulacode_dagster.suites.commits import find_suite


@dataclass(frozen=True)
class RepositoryFacts:
    """Facts about the base commit."""

    declared: Mapping[str, str]
    """Requirements by normalised project name: of the package itself, then of extras, groups and files."""
    has_submodules: bool


def read_repository_facts(reader: CommitReader, pr: PullRequest) -> RepositoryFacts:
    """Read them at the base of *pr*. Raises what `find_suite` and `read_repository` raise."""
    base = Tree(reader, pr.change.base_sha)
    suite = find_suite(reader, pr.change.base_sha, pr.facts.merge_commit_sha)
    repository = read_repository(base, (suite.tree,), suite.config)
    offered = [item for offer in repository.optional_groups for item in offer.items]
    declared: dict[str, str] = {}
    for item in validate([*(repository.metadata.dependencies or ()), *offered]).accepted:
        declared.setdefault(requirement_name(item.text), item.text)
    return RepositoryFacts(declared, base.has(".gitmodules"))
