"""Reads the definitions of the samples from the data files next to this module.

`data/people.toml` names the people. Each folder next to it is a repository: `repository.toml` (metadata, issues),
`tree.toml` (the files of the first commit), `pushes.toml` (direct pushes), and one `NNN-….toml` per pull request.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from formulacode_dagster.models.errors import ConfigurationError

from .definitions import Person, Push, SamplePullRequest, SampleRepository

DATA = Path(__file__).with_name("data")


@cache
def people() -> dict[str, Person]:
    """Committers by login."""
    return {login: Person(**facts) for login, facts in _read(DATA / "people.toml").items()}


@cache
def repositories() -> tuple[SampleRepository, ...]:
    """The sample repositories by name; raises ConfigurationError when a data file is malformed."""
    folders = sorted(path.parent for path in DATA.glob("*/repository.toml"))
    return tuple(sorted((_repository(folder) for folder in folders), key=lambda repository: repository.name))


def catalog() -> tuple[SamplePullRequest, ...]:
    """Every pull request of every sample repository, by repository and number."""
    found = [pull_request for repository in repositories() for pull_request in repository.pull_requests]
    return tuple(sorted(found, key=lambda change: (change.repository, change.number)))


def _repository(folder: Path) -> SampleRepository:
    facts = _read(folder / "repository.toml")
    tree, pushes = folder / "tree.toml", folder / "pushes.toml"
    try:
        return SampleRepository(
            **facts,
            files=_read(tree) if tree.exists() else {},
            pushes=tuple(Push(**push) for push in _read(pushes)["pushes"]) if pushes.exists() else (),
            pull_requests=tuple(
                SamplePullRequest(repository=facts["name"], number=int(path.name.partition("-")[0]), **_read(path))
                for path in sorted(folder.glob("[0-9]*.toml"))
            ),
        )
    except ValidationError as error:
        raise ConfigurationError(f"a definition in {folder} is malformed", why=str(error)) from error


def _read(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{path} is malformed", why=str(error)) from error
