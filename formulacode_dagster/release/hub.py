"""The dataset on the Hugging Face Hub: one commit and one tag for each month."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from formulacode_dagster.models.acceptance import Acceptance
from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.release import Release

from .card import data_path
from .dataset import from_parquet, rows_checksum
from .destination import files_of, read_back, require_unchanged
from .hub_client import REPO_TYPE, SYSTEM, TIMEOUT_SECONDS, download, hub_api, hub_errors
from .index import INDEX_FILE, Index, facts_of

if TYPE_CHECKING:
    import polars as pl
    from huggingface_hub import HfApi

BRANCH = "main"
MAX_RACES = 8
"""How often another month may commit between our reading and our writing before we give up."""

_CONFLICT = (409, 412)


class HubDestination:
    """A dataset repository that keeps the dataset under tags."""

    def __init__(self, repo_id: str, endpoint: str, token: str, timeout: float = TIMEOUT_SECONDS) -> None:
        self._repo_id = repo_id
        self._endpoint = endpoint or "https://huggingface.co"
        self._token = token
        self._timeout = timeout

    @property
    def name(self) -> str:
        """`hub:owner/name`."""
        return f"hub:{self._repo_id}"

    def release(self, month: Month, frame: pl.DataFrame, accepted: Sequence[Acceptance] = ()) -> Release:
        """See `Destination.release`. A run that was killed after the commit is finished by the next one."""
        api = self._api()
        with hub_errors(f"release {month.key} to {self._repo_id} at {self._endpoint}", self._token):
            if month.release not in self._tags(api):
                api.create_repo(self._repo_id, repo_type=REPO_TYPE, exist_ok=True)
                commit = self._commit(api, month, frame, accepted)
                self._tag(api, month, commit)
            else:
                commit = None
            revision, content = self._tagged(api, month)
            if revision != commit:
                # released before, by this run's forerunner or by another one a moment ago
                require_unchanged(month, frame, self.name, content)
            return read_back(
                month,
                frame,
                destination=self.name,
                revision=revision,
                content=content,
                released_at=self._date(api, revision),
            )

    def tags(self) -> Mapping[str, str]:
        """See `Destination.tags`."""
        api = self._api()
        with hub_errors(f"list the tags of {self._repo_id} at {self._endpoint}", self._token):
            return self._tags(api)

    def _api(self) -> HfApi:
        if not self._token:
            raise ConfigurationError(
                f"no token for the dataset {self._repo_id}",
                why="HF_DATASET is set, and neither HF_TOKEN nor HF_TOKEN_PATH is",
                remedy="Set HF_TOKEN to a token that may write there, or unset HF_DATASET to release to a folder",
            )
        return hub_api(self._endpoint, self._token, self._timeout)

    def _tags(self, api: HfApi) -> dict[str, str]:
        from huggingface_hub.errors import RepositoryNotFoundError

        try:
            refs = api.list_repo_refs(self._repo_id, repo_type=REPO_TYPE)
        except RepositoryNotFoundError as error:
            if error.response.status_code != 404:
                raise
            return {}
        return {ref.name: ref.target_commit for ref in refs.tags}

    def _commit(self, api: HfApi, month: Month, frame: pl.DataFrame, accepted: Sequence[Acceptance]) -> str:
        """The commit on the branch that holds the month's rows: made now, or found from a run that was killed."""
        from huggingface_hub import CommitOperationAdd
        from huggingface_hub.errors import HfHubHTTPError

        for _ in range(MAX_RACES):
            refs = api.list_repo_refs(self._repo_id, repo_type=REPO_TYPE)
            head = next((ref.target_commit for ref in refs.branches if ref.name == BRANCH), None)
            where = f"{self.name}, {INDEX_FILE}"
            index = Index.parse(self._download(api, INDEX_FILE, head) if head else None, where)
            there = index.month(month.key) == facts_of(month, frame, accepted)
            if head and there and self._holds(api, month, head, frame):
                return head
            operations = [
                CommitOperationAdd(path_in_repo=path, path_or_fileobj=content)
                for path, content in files_of(month, frame, index, accepted).items()
            ]
            try:
                made = api.create_commit(
                    self._repo_id,
                    operations,
                    commit_message=f"Release {month.key} as {month.release}",
                    repo_type=REPO_TYPE,
                    revision=BRANCH,
                    parent_commit=head,
                )
            except HfHubHTTPError as error:
                if error.response.status_code in _CONFLICT:
                    continue
                raise
            return made.oid
        raise OutsideSystemError(
            SYSTEM,
            f"cannot commit {month.key} to {self._repo_id}",
            why=f"others committed first, {MAX_RACES} times in a row",
            remedy="Release fewer months at the same time",
        )

    def _tag(self, api: HfApi, month: Month, commit: str) -> None:
        api.create_tag(self._repo_id, tag=month.release, revision=commit, repo_type=REPO_TYPE, exist_ok=True)

    def _tagged(self, api: HfApi, month: Month) -> tuple[str, bytes]:
        """What the month's tag points to, and the month's Parquet file there."""
        revision = self._tags(api).get(month.release)
        if revision is None:
            raise OutsideSystemError(
                SYSTEM, f"{month.release} of {self._repo_id} is gone", why="it was there a moment ago"
            )
        return revision, self._content(api, month, month.release)

    def _date(self, api: HfApi, revision: str) -> datetime:
        return api.list_repo_commits(self._repo_id, repo_type=REPO_TYPE, revision=revision)[0].created_at

    def _holds(self, api: HfApi, month: Month, revision: str, frame: pl.DataFrame) -> bool:
        path = data_path(month.key)
        content = self._download(api, path, revision)
        return content is not None and rows_checksum(from_parquet(content, path)) == rows_checksum(frame)

    def _content(self, api: HfApi, month: Month, revision: str) -> bytes:
        path = data_path(month.key)
        content = self._download(api, path, revision)
        if content is None:
            raise OutsideSystemError(
                SYSTEM,
                f"{path} is not in {self._repo_id} at {month.release}",
                why="a tag of that name exists that no release of ours made",
                remedy="Remove the tag if nobody depends on it, or release to another dataset (HF_DATASET)",
            )
        return content

    def _download(self, api: HfApi, path: str, revision: str) -> bytes | None:
        return download(api, self._repo_id, path, revision)
