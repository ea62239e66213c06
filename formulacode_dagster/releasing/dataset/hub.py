"""The dataset on the Hugging Face Hub: one commit and one tag for each month, and for each revision of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from formulacode_dagster.models.check import Acceptance
from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.release import Release
from formulacode_dagster.operating.cancellation.stopping import stop_request

from .destination import (
    ReleasedMonth,
    edition_to_release,
    files_of,
    newest_release,
    next_edition,
    read_back,
    released_tables,
)
from .edition import Edition
from .hub_client import REPO_TYPE, SYSTEM, TIMEOUT_SECONDS, download, hub_api, hub_errors, patiently
from .index import INDEX_FILE, DatasetIndex, facts_of
from .tables import MonthTables

if TYPE_CHECKING:
    from huggingface_hub import HfApi

T = TypeVar("T")
BRANCH = "main"
MAX_RACES = 8
"""Commits by other months between our read and our write before we give up."""

_CONFLICT = (409, 412)


class HubDestination:
    """A dataset repository that keeps the dataset under tags."""

    def __init__(
        self,
        repo_id: str,
        endpoint: str,
        token: str,
        timeout: float = TIMEOUT_SECONDS,
        sleep: Callable[[float], object] | None = None,
    ) -> None:
        self._repo_id = repo_id
        self._endpoint = endpoint or "https://huggingface.co"
        self._token = token
        self._timeout = timeout
        self._sleep = sleep or stop_request().sleep

    @property
    def name(self) -> str:
        """`hub:owner/name`."""
        return f"hub:{self._repo_id}"

    @property
    def url(self) -> str:
        """See `Destination.url`."""
        return f"{self._endpoint.rstrip('/')}/datasets/{self._repo_id}"

    def release(
        self, month: Month, tables: MonthTables, accepted: Sequence[Acceptance] = (), correction: str = ""
    ) -> Release:
        """See `Destination.release`. A run that was killed after the commit is finished by the next one."""
        api = self._api()
        with hub_errors(f"release {month.key} to {self._repo_id} at {self._endpoint}", self._token):
            wanted = tables
            edition, tables, is_new = self._again(lambda: self._edition(api, month, wanted, accepted, correction))
            commit = None
            if is_new:
                self.require_write()
                self._again(lambda: api.create_repo(self._repo_id, repo_type=REPO_TYPE, exist_ok=True))
                commit = self._again(lambda: self._commit(api, edition, tables))
                self._again(lambda: self._tag(api, edition, commit))
            revision, released = self._again(lambda: self._tagged(api, edition))
            if is_new and revision != commit:
                # another run released it a moment ago: with other rows it is not ours
                _, tables = next_edition(edition, tables, self.name, released, correction="")
            released_at = self._again(lambda: self._date(api, revision))
            return read_back(
                edition, tables, released, destination=self.name, revision=revision, released_at=released_at
            )

    def _edition(
        self, api: HfApi, month: Month, tables: MonthTables, accepted: Sequence[Acceptance], correction: str
    ) -> tuple[Edition, MonthTables, bool]:
        """See `edition_to_release`."""
        read = partial(self._download, api)
        return edition_to_release(month, tables, self._tags(api), read, self.name, accepted, correction)

    def read(self, month: Month) -> ReleasedMonth | None:
        """See `Destination.read`; a dataset that everybody may read takes no token."""
        api = hub_api(self._endpoint, self._token, self._timeout)
        with hub_errors(f"read {month.key} of {self._repo_id} at {self._endpoint}", self._token):
            read = partial(self._download, api)
            return self._again(lambda: newest_release(month, self._tags(api), read, self.name))

    def content(self, path: str, tag: str = "") -> bytes | None:
        """See `Destination.content`; a dataset that everybody may read takes no token."""
        api = hub_api(self._endpoint, self._token, self._timeout)
        with hub_errors(f"read {path} of {self._repo_id} at {self._endpoint}", self._token):
            return self._again(lambda: self._download(api, path, tag))

    def tags(self) -> Mapping[str, str]:
        """See `Destination.tags`."""
        api = self._api()
        with hub_errors(f"list the tags of {self._repo_id} at {self._endpoint}", self._token):
            return self._again(lambda: self._tags(api))

    def require_write(self) -> None:
        """See `Destination.require_write`; checks only the permission, and writes nothing."""
        from huggingface_hub.errors import RepositoryNotFoundError

        api = self._api()
        with hub_errors(f"write to {self._repo_id} at {self._endpoint}", self._token):
            try:
                self._again(lambda: api.auth_check(self._repo_id, repo_type=REPO_TYPE, write=True))
            except RepositoryNotFoundError as error:
                if error.response.status_code != 404:
                    raise
                # there is no such dataset yet: only the token's own description is available
                role = self._again(api.whoami)["auth"]["accessToken"].get("role")
                if role == "read":
                    raise ConfigurationError(
                        f"the Hub refuses to write to {self._repo_id}",
                        why="the dataset is not there, or hidden, and the token may only read",
                        remedy="Set HF_TOKEN (or HF_TOKEN_PATH) to a token with write access to HF_DATASET",
                    ) from None

    def _again(self, call: Callable[[], T]) -> T:
        return patiently(call, self._sleep)

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

    def _commit(self, api: HfApi, edition: Edition, tables: MonthTables) -> str:
        """Return the commit on the branch with the month's rows: a new one, or one of a killed run."""
        from huggingface_hub import CommitOperationAdd
        from huggingface_hub.errors import HfHubHTTPError

        month = edition.month
        for _ in range(MAX_RACES):
            refs = api.list_repo_refs(self._repo_id, repo_type=REPO_TYPE)
            head = next((ref.target_commit for ref in refs.branches if ref.name == BRANCH), None)
            index = self._index(api, head) if head else DatasetIndex()
            there = index.month(month.key) == facts_of(edition, tables)
            if head and there and self._holds(api, month, head, tables):
                return head
            operations = [
                CommitOperationAdd(path_in_repo=path, path_or_fileobj=content)
                for path, content in files_of(edition, tables, index, self.url).items()
            ]
            try:
                made = api.create_commit(
                    self._repo_id,
                    operations,
                    commit_message=f"Release {month.key} as {edition.tag}",
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

    def _tag(self, api: HfApi, edition: Edition, commit: str) -> None:
        api.create_tag(self._repo_id, tag=edition.tag, revision=commit, repo_type=REPO_TYPE, exist_ok=True)

    def _tagged(self, api: HfApi, edition: Edition) -> tuple[str, MonthTables]:
        """Return the target of the edition's tag, and the month's tables there."""
        revision = self._tags(api).get(edition.tag)
        if revision is None:
            raise OutsideSystemError(
                SYSTEM, f"{edition.tag} of {self._repo_id} is gone", why="it was there a moment ago"
            )
        read = partial(self._download, api)
        return revision, released_tables(edition.month, edition.tag, read, self.name)

    def _date(self, api: HfApi, revision: str) -> datetime:
        return api.list_repo_commits(self._repo_id, repo_type=REPO_TYPE, revision=revision)[0].created_at

    def _holds(self, api: HfApi, month: Month, revision: str, tables: MonthTables) -> bool:
        there = released_tables(month, revision, partial(self._download, api), self.name)
        return there.checksum == tables.checksum

    def _index(self, api: HfApi, revision: str) -> DatasetIndex:
        return DatasetIndex.parse(self._download(api, INDEX_FILE, revision), f"{self.name}, {INDEX_FILE}")

    def _download(self, api: HfApi, path: str, revision: str) -> bytes | None:
        return download(api, self._repo_id, path, revision or BRANCH)
