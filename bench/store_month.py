"""The month of `bench/store.py`: the same repositories, pull requests and patches, whichever process asks."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from datetime import timedelta

from formulacode_dagster.models.intake import MergedWindow
from formulacode_dagster.models.month import Month
from formulacode_dagster.models.pull_request import Change, ChangedFile, IntakeCount, LinkedIssue, MergedPullRequest
from formulacode_dagster.models.repository import Repository
from formulacode_dagster.operating.store.pull_requests import MergedName

MONTH = Month.parse("2026-02")
WORDS = 40_000


@dataclass(frozen=True)
class Size:
    """Size of the month."""

    pull_requests: int
    repositories: int
    largest: int

    def of(self, repository: int) -> int:
        """Pull requests of the repository with this id, counted from 1."""
        if repository == 1:
            return self.largest
        share, rest = divmod(self.pull_requests - self.largest, self.repositories - 1)
        return share + (repository - 2 < rest)


class Generator:
    """The same pull requests for the same size, whichever process asks; a later *edition* has other titles."""

    def __init__(self, size: Size, edition: str = "") -> None:
        self._size = size
        self._edition = edition
        words = random.Random(1)  # noqa: S311 - the same texts every time, no secret
        alphabet = "eeeeetttaaaoooiiinnnsshhrrdlucmfwypvbgk"
        vocabulary = ["".join(words.choices(alphabet, k=words.randint(2, 11))) for _ in range(4000)]
        self._prose = " ".join(words.choices(vocabulary, k=WORDS))

    @property
    def repositories(self) -> list[Repository]:
        """Tracked repositories."""
        return [
            Repository(
                month=MONTH.key,
                id=number,
                node_id=f"R_{number}",
                full_name=f"bench/project-{number}",
                state="active",
                config_path="asv.conf.json",
            )
            for number in range(1, self._size.repositories + 1)
        ]

    def window(self, repository: Repository) -> MergedWindow:
        """All that was merged in the repository's month."""
        size = self._size.of(repository.id)
        rows = tuple(self._pull_request(repository, number) for number in range(1, size + 1))
        count = IntakeCount(
            month=MONTH.key,
            repository_id=repository.id,
            repository=repository.full_name,
            reported=size,
            stored=size,
        )
        return MergedWindow(rows, count)

    def change(self, name: MergedName) -> tuple[Change, bytes]:
        """A patch of some kB in five files."""
        dice = random.Random(name.item)  # noqa: S311 - as above
        patch = f"diff of {name.item}\n{self._text(dice, 3000)}".encode()
        files = tuple(ChangedFile(path=f"package/module_{_}.py", status="M", additions=10) for _ in range(5))
        change = Change(
            month=MONTH.key,
            repository_id=name.repository_id,
            number=name.number,
            merge_kind="squash",
            base_sha="c" * 40,
            merge_tree_sha="d" * 40,
            patch_sha256=hashlib.sha256(patch).hexdigest(),
            patch_bytes=len(patch),
            files=files,
        )
        return change, patch

    def _pull_request(self, repository: Repository, number: int) -> MergedPullRequest:
        dice = random.Random(repository.id * 100_000 + number)  # noqa: S311 - as above
        merged_at = MONTH.start + timedelta(seconds=dice.randrange(28 * 86_400))
        issue = LinkedIssue(
            repository=repository.full_name,
            number=number + 10_000,
            title=self._text(dice, 60),
            body=self._text(dice, 1500),
            author="reporter",
            created_at=merged_at - timedelta(days=30),
        )
        return MergedPullRequest(
            month=MONTH.key,
            repository_id=repository.id,
            repository=repository.full_name,
            number=number,
            title=self._text(dice, 60) + self._edition,
            body=self._text(dice, min(65_536, int(dice.lognormvariate(8.0, 0.9)))),
            author=f"author-{dice.randrange(500)}",
            labels=("performance", "ready")[: dice.randrange(3)],
            created_at=merged_at - timedelta(days=3),
            merged_at=merged_at,
            base_ref="main",
            head_sha=f"{dice.getrandbits(160):040x}",
            merge_commit_sha=f"{dice.getrandbits(160):040x}",
            commit_count=dice.randrange(1, 20),
            changed_files=dice.randrange(1, 40),
            linked_issues=(issue,) * (dice.random() < 0.3),
        )

    def _text(self, dice: random.Random, length: int) -> str:
        start = dice.randrange(len(self._prose) - 70_000)
        return self._prose[start : start + length]
