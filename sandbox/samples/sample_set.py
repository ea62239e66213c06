"""Content that `generate` leaves in a folder."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.pull_request import MergeKind


class GeneratedPullRequest(Frozen):
    """Place of a sample pull request in its repository. `base_sha` is the commit it was merged onto."""

    item: str
    month: str
    merge_kind: MergeKind
    base_sha: str
    head_sha: str
    merge_commit_sha: str


class SampleSet(Frozen):
    """A folder of sample repositories and its side file, as they were generated."""

    folder: Path = Field(exclude=True)
    made_from: str = Field(description="SHA-256 over the definitions and the code that generated it")
    heads: dict[str, str] = Field(description="SHA of the default branch's tip by `owner/name`")
    pull_requests: tuple[GeneratedPullRequest, ...]

    def repository(self, name: str) -> Path:
        """The bare repository of `owner/name`."""
        return self.folder / f"{name}.git"
