"""Talking to the host that repositories are cloned from."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from pathlib import Path

from formulacode_dagster.models.errors import ConfigurationError, ItemFailure, OutsideSystemError, SuspectedOutage
from formulacode_dagster.models.reasons import FailureKind
from formulacode_dagster.operating.cancellation.backoff import Backoff
from formulacode_dagster.operating.cancellation.last_answers import note_answer
from formulacode_dagster.operating.cancellation.stopping import stop_request

from .blobs import REMOTE
from .command import GitError, git
from .faults import SYSTEM, Fault, fault_of, refused_object, translate, unlock

ATTEMPTS = 3
BACKOFF = Backoff(first_seconds=1.0, longest_seconds=60.0)
TRANSFER_SECONDS = 3600.0
BRANCHES_AND_TAGS = ("+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*")
KEPT = "refs/kept"

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*/[A-Za-z0-9._-]+")


def checked_name(repository: str) -> str:
    """*repository* when it is a plain `owner/name`; raises ItemFailure (kind `name`) when it could leave its folder."""
    name = repository.partition("/")[2]
    if not _NAME.fullmatch(repository) or name in (".", "..") or name.endswith(".git"):
        raise ItemFailure(
            FailureKind.NAME, f"{repository!r} is not the name of a repository", remedy="Write it as owner/repo"
        )
    return repository


class GitRemote:
    """Clones and fetches; transient faults are retried; a lasting fault is the item's, a dead host stops the stage."""

    def __init__(self, clone_url: str, *, filtered: bool | None = None, backoff: Backoff = BACKOFF) -> None:
        self._url = clone_url.rstrip("/")
        self._backoff = backoff
        self._sleep = stop_request().sleep
        self._folder: Path | None = None
        if self._url.startswith("file://"):
            self._folder = Path(self._url.removeprefix("file://")).expanduser().resolve()
        elif not re.match(r"https?://[^/]", self._url):
            raise ConfigurationError(
                f"GITHUB_CLONE_URL is {clone_url!r}", remedy="Set it to https://… or to file:// and a folder"
            )
        # A folder of this machine is hard-linked, which costs less than leaving anything out.
        self.filtered = self._folder is None if filtered is None else filtered

    def clone(self, repository: str, target: Path) -> None:
        """Make the bare repository *target*; raises ItemFailure `vanished`, `timeout`, `git`."""
        filters = ["--filter=blob:none", "--no-local"] if self.filtered else []

        def attempt() -> None:
            git(
                None,
                "clone",
                "--bare",
                "--quiet",
                *filters,
                self._source(repository),
                str(target),
                seconds=TRANSFER_SECONDS,
            )

        self._insist(attempt, "clone", repository)

    def point(self, mirror: Path, repository: str) -> None:
        """Have *mirror* fetch from here: the clone URL may have changed since it was made. Raises as `clone` does."""
        source = self._url_of(repository)
        try:
            if f"\turl = {source}\n" not in (mirror / "config").read_text():
                git(mirror, "config", "--replace-all", f"remote.{REMOTE}.url", source)
        except GitError as error:
            raise translate(error, "fetch", repository) from error

    def update(self, repository: str, mirror: Path) -> None:
        """Fetch branches and tags, and the name of the default branch if others had commits and this one had none.
        Nothing is dropped: commits of deleted branches stay.
        """
        base = ["fetch", "--quiet", "--force", "--no-write-fetch-head", REMOTE, *BRANCHES_AND_TAGS]

        def attempt() -> None:
            # empty if the head is a commit: then there is no name to follow
            default = git(mirror, "branch", "--show-current").decode().strip()
            before = _tip(mirror, default)
            try:
                git(mirror, *base, seconds=TRANSFER_SECONDS)
            except GitError as error:
                if fault_of(error) is not Fault.OTHER:
                    raise
                # A branch `a` that became `a/b` can only be fetched once the old one is dropped.
                git(mirror, base[0], "--prune", *base[1:], seconds=TRANSFER_SECONDS)
            if default and (tip := _tip(mirror, default)) in (before, b"") and tip != _tip(mirror):
                _follow_head(mirror)

        self._insist(attempt, "fetch", repository, mirror)

    def fetch(self, repository: str, mirror: Path, wanted: Collection[str]) -> None:
        """Fetch commits by hash; those that the host does not have are left out."""
        left = list(dict.fromkeys(wanted))

        def attempt() -> None:
            while left:
                try:
                    git(
                        mirror,
                        "fetch",
                        "--quiet",
                        "--no-tags",
                        "--no-write-fetch-head",
                        # A month's commits are more than a command line takes.
                        "--stdin",
                        REMOTE,
                        stdin="".join(f"+{sha}:{KEPT}/{sha}\n" for sha in left).encode(),
                        seconds=TRANSFER_SECONDS,
                    )
                except GitError as error:
                    # A host names one that it does not have, and sends nothing.
                    refused = refused_object(error)
                    if refused not in left:
                        raise
                    left.remove(refused)
                else:
                    return

        self._insist(attempt, "fetch", repository, mirror)

    def _source(self, repository: str) -> str:
        if self._folder is None or (self._folder / f"{repository}.git").is_dir():
            return self._url_of(repository)
        if not self._folder.is_dir():
            raise OutsideSystemError(
                SYSTEM, f"the folder {self._folder} is not there", remedy="Set GITHUB_CLONE_URL to a folder of mirrors"
            )
        raise SuspectedOutage(
            SYSTEM,
            FailureKind.MIRROR,
            f"{repository} cannot be cloned: there is no {self._folder / repository}.git",
            remedy="Fetch it there, then run again",
        )

    def _url_of(self, repository: str) -> str:
        if self._folder is None:
            return f"{self._url}/{repository}.git"
        path = self._folder / f"{repository}.git"
        return f"file://{path}" if self.filtered else str(path)

    def _insist(self, attempt: Callable[[], None], what: str, repository: str, mirror: Path | None = None) -> None:
        for number in range(1, ATTEMPTS + 1):
            try:
                attempt()
            except GitError as error:
                fault = fault_of(error)
                if number == ATTEMPTS or fault not in (Fault.HOST, Fault.PASSING, Fault.LOCKED):
                    raise translate(error, what, repository) from error
                if fault is Fault.LOCKED and mirror is not None:
                    unlock(error, mirror)
                else:
                    self._sleep(self._backoff.seconds(number))
            else:
                note_answer(SYSTEM)
                return


def _tip(mirror: Path, branch: str = "") -> bytes:
    """Return the newest commit of *branch*, or of any branch; empty without one."""
    newest = ("--sort=-committerdate", "--count=1", "--format=%(objectname)")
    return git(mirror, "for-each-ref", *newest, f"refs/heads/{branch}")


def _follow_head(mirror: Path) -> None:
    """Point the head of *mirror* at the default branch of its origin: a project may rename it."""
    listed = git(mirror, "ls-remote", "--symref", REMOTE, "HEAD", seconds=TRANSFER_SECONDS)
    branch = re.match(rb"ref: (refs/heads/\S+)\tHEAD", listed)
    if branch and git(mirror, "for-each-ref", branch[1].decode()):
        git(mirror, "symbolic-ref", "HEAD", branch[1].decode())
