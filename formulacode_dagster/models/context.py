"""How the image of one commit is built, beyond what the repository declares, and where that came from."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from enum import StrEnum
from typing import Self

from pydantic import Field

from .base import Frozen
from .recipe import Fix


class Provenance(StrEnum):
    """Where a context came from."""

    DECLARED = "declared"
    """The declarations were enough."""
    RULES = "rules"
    AGENT = "agent"
    IMPORTED = "imported"
    """A person's folder, taken in as a recipe."""


class StoredContext(Frozen):
    """The recipe of one commit: kept when an image made by it holds, or when a person imports one."""

    context_id: str = Field(description="16 hexadecimal digits over commit, recipe and files")
    repository_id: int
    repository: str = Field(description="`owner/repo`")
    number: int = Field(description="pull request whose base the commit is")
    base_sha: str
    merged_at: datetime
    provenance: Provenance
    made_by: str = Field(default="", description="rules, agent or folder that it comes from")
    created_at: datetime
    held_at: datetime | None = Field(default=None, description="when an image made by it last held; None: not yet")
    digest: str = Field(default="", description="of that image")
    fixes: tuple[Fix, ...] = ()
    requirements: tuple[str, ...] = Field(default=(), description="what the commit declares, to run and to build")
    build_files: dict[str, str] = Field(default_factory=dict, description="its build files, by path, as short hashes")
    files: dict[str, str] = Field(default_factory=dict, description="the folder it was imported from, by name")

    @classmethod
    def of(cls, *, repository_id: int, base_sha: str, fixes: tuple[Fix, ...], **more: object) -> Self:
        """A context with the id that follows from its content; what rules saw in a log is no part of that."""
        recipe = [fix.model_dump(mode="json", exclude={"evidence"}) for fix in fixes]
        content = json.dumps([repository_id, base_sha, recipe, more.get("files", {})], sort_keys=True)
        context_id = hashlib.sha256(content.encode()).hexdigest()[:16]
        given = {"repository_id": repository_id, "base_sha": base_sha, "fixes": fixes, **more}
        return cls.model_validate({"context_id": context_id, **given})

    @property
    def newest(self) -> datetime:
        """When it last held, or was made."""
        return max(filter(None, (self.held_at, self.created_at)))
