"""Answers to questions that were asked before, one file each, whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.operating.files.atomic import replacing

from .resolution import Refusal, Resolution, Unsolvable


class _Kept(Frozen):
    resolution: Resolution | None = None
    refusal: Refusal | None = None


@dataclass(frozen=True)
class ResolutionCache:
    """The folder of answers. A damaged file is one that is not there."""

    folder: Path

    def read(self, key: str) -> Resolution | None:
        """Return the answer to the question of *key* (a hex digest), None if there is none; raises Unsolvable again."""
        try:
            kept = _Kept.model_validate_json(self._place(key).read_bytes())
        except (FileNotFoundError, ValidationError):
            return None
        if kept.refusal is not None:
            raise Unsolvable(kept.refusal)
        return kept.resolution

    def keep(self, key: str, answer: Resolution | Unsolvable) -> None:
        """Write *answer* down."""
        kept = _Kept(resolution=answer) if isinstance(answer, Resolution) else _Kept(refusal=answer.refusal)
        with replacing(self._place(key)) as partial:
            partial.write_text(kept.model_dump_json(), encoding="utf-8")

    def _place(self, key: str) -> Path:
        return self.folder / key[:2] / f"{key}.json"
