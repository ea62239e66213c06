"""Who still needs a built image."""

from __future__ import annotations

from datetime import datetime

from pydantic import Field

from .base import Frozen


class ImageNeed(Frozen):
    """What the database says about one image of a task."""

    item: str = Field(description="`owner/repo#123`, `` when the pull request is no longer part of its month")
    month: str
    digest: str
    last: datetime = Field(description="when a stage last ended with it: built, measured, published")
    unfinished: bool = Field(description="its month is not released, and it is still to be measured or published")
    only_copy: bool = Field(description="measured to be faster, and in no registry")
