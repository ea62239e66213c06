"""Writes the sample repositories and their `sandbox.json` into a folder: whole, or not at all."""

from __future__ import annotations

import hashlib
import json
import shutil
from functools import cache
from pathlib import Path

from filelock import FileLock

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.sources.offline.side_file import SIDE_FILE, PullRequestFacts, RepositoryFacts, SideFile

from .catalog import people, repositories
from .definitions import SampleRepository
from .fast_import import write_repository
from .history import History, history_of
from .sample_set import GeneratedPullRequest, SampleSet

STAMP = "samples.json"
"""The file with the folder's content, and the definitions it was made from."""


def generate(folder: Path) -> SampleSet:
    """Write the sample repositories as `owner/name.git`, and `sandbox.json`, into *folder*.

    A folder with the current samples stays as it is, one with those of other definitions is replaced. Raises
    ConfigurationError if *folder* holds anything else, OutsideSystemError if git fails.
    """
    found = _standing(folder)
    if found is not None:
        return found
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(folder.parent / f".{folder.name}.lock"):
        return _standing(folder) or _replace(folder)


def _standing(folder: Path) -> SampleSet | None:
    """The samples of these definitions that are in *folder*; None when they are not all there."""
    try:
        found = SampleSet(folder=folder, **json.loads((folder / STAMP).read_bytes()))
    except (FileNotFoundError, NotADirectoryError, ValueError, TypeError):
        return None
    whole = (folder / SIDE_FILE).is_file() and all((found.repository(name) / "HEAD").is_file() for name in found.heads)
    return found if whole and found.made_from == _definitions_sha256() else None


def _replace(folder: Path) -> SampleSet:
    if folder.exists() and not (folder / STAMP).exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ConfigurationError(
            f"{folder} contains something other than samples",
            remedy="Name an empty folder, or one that is not there yet",
        )
    # Next to the folder, so that renaming does not copy; left over after a kill.
    scratch = folder.parent / f".{folder.name}.part"
    shutil.rmtree(scratch, ignore_errors=True)
    made = _write(scratch / "made").model_copy(update={"folder": folder})
    if folder.exists():
        folder.rename(scratch / "replaced")
    (scratch / "made").rename(folder)
    shutil.rmtree(scratch)
    return made


def _write(folder: Path) -> SampleSet:
    """Write everything into the new *folder*, the stamp last."""
    by_name = {repository.name: repository for repository in repositories()}
    facts: dict[str, RepositoryFacts] = {}
    heads: dict[str, str] = {}
    generated: list[GeneratedPullRequest] = []
    for name, repository in by_name.items():
        history = history_of(repository, people(), origin=by_name[repository.fork_of] if repository.fork_of else None)
        shas = write_repository(folder / f"{name}.git", history, default_branch=repository.default_branch)
        facts[name] = _facts(repository, history, shas)
        heads[name] = shas[history.tip]
        generated += [
            GeneratedPullRequest(
                item=landed.pull_request.item,
                month=landed.pull_request.month.key,
                merge_kind=landed.pull_request.merge,
                base_sha=shas[landed.base],
                head_sha=shas[landed.head],
                merge_commit_sha=shas[landed.merge],
            )
            for landed in history.landed
        ]
    made = SampleSet(folder=folder, made_from=_definitions_sha256(), heads=heads, pull_requests=tuple(generated))
    side_file = SideFile(repositories=facts)
    (folder / SIDE_FILE).write_text(side_file.model_dump_json(indent=1, exclude_defaults=True) + "\n", encoding="utf-8")
    (folder / STAMP).write_text(made.model_dump_json(indent=1) + "\n", encoding="utf-8")
    return made


def _facts(repository: SampleRepository, history: History, shas: dict[int, str]) -> RepositoryFacts:
    return RepositoryFacts(
        id=repository.id,
        stars=repository.stars,
        language=repository.language,
        description=repository.description,
        is_fork=repository.fork_of is not None,
        is_archived=repository.archived_at is not None,
        archived_at=repository.archived_at,
        former_names=repository.former_names,
        issues=repository.issues,
        pull_requests=tuple(
            PullRequestFacts(
                number=landed.pull_request.number,
                title=landed.pull_request.title,
                body=landed.pull_request.body,
                author=landed.pull_request.author,
                labels=landed.pull_request.labels,
                created_at=landed.pull_request.created,
                merged_at=landed.pull_request.merged,
                merge_kind=landed.pull_request.merge,
                merge_commit_sha=shas[landed.merge],
                head_sha=shas[landed.head],
                commit_count=len(landed.pull_request.commits),
                closes=landed.pull_request.closes,
                comments=landed.pull_request.comments,
            )
            for landed in history.landed
        ),
    )


@cache
def _definitions_sha256() -> str:
    """Over the data files and the modules of this package: a change of either makes other samples."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for path in sorted(path for path in package.rglob("*") if path.suffix in (".py", ".toml")):
        content = path.read_bytes()
        digest.update(f"{path.relative_to(package).as_posix()}\0{len(content)}\0".encode() + content)
    return digest.hexdigest()
