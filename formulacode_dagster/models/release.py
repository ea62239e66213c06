"""What leaves the house: pushed images and the dataset."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from .base import Frozen


class PublishedImage(Frozen):
    """One row of `published_images`: an image that was pushed, and pulled back by digest."""

    month: str
    repository_id: int
    number: int
    reference: str = Field(description="registry/namespace/repository:tag")
    digest: str = Field(description="sha256:… of the manifest in the registry")
    pulled_digest: str = Field(description="digest found when it was pulled back")
    image_digest: str = Field(description="the measured image")
    size_bytes: int


class TaskRecord(Frozen):
    """One row of the dataset."""

    task_id: str
    repo_name: str
    container_name: str
    image_name: str | None
    image_digest: str | None
    difficulty: str
    classification: str
    patch: str
    final_md: str
    pr_merged_at: datetime
    pr_merge_commit_sha: str
    pr_base_sha: str
    pr_number: int
    month: str
    python: str
    lock: str
    speedup: float
    benchmarks: tuple[str, ...] = Field(description="benchmarks that are really faster")
    benchmark_speedups: tuple[float, ...]
    patch_encoding: str = Field(
        default="utf-8", description="`patch.encode(patch_encoding)` is what git made, byte for byte"
    )
    verified: bool = Field(description="measured to be faster, in an image that was pulled back by digest")


class Release(Frozen):
    """One row of `releases`: a month of the dataset, written, tagged, read back."""

    month: str
    tag: str
    destination: str = Field(description="`hub:owner/name` or the path of a folder")
    revision: str = Field(description="commit the tag points to")
    tasks: int
    task_ids: tuple[str, ...]
    rows_sha256: str = Field(description="checksum over the month's rows, as written")
    read_back_sha256: str = Field(description="the same checksum over the rows as read back")
    schema_sha256: str
    released_at: datetime
