"""Results of each item in each pass of `bench-synthesis`, in a file of JSON lines for resumption."""

from __future__ import annotations

from pathlib import Path

from formulacode_dagster.models.attempt import BuildAttempt
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.recipe import StoredContext


class Climb(Frozen):
    """One item in one pass."""

    made_in: str
    """Name of the pass."""
    item: str
    attempts: tuple[BuildAttempt, ...] = ()
    context: StoredContext | None = None
    """Its recipe for later items, if it passes."""
    spec: str = ""
    """Hash of the passing spec."""
    lost: str = ""
    """Kind of failure or reason, if none passes."""
    is_cut_short: bool = False
    """Caused by an outside system, which says nothing about the item."""


class Climbs:
    """Results in *file*, each stored as it ends; without a file, none."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        lines = file.read_text("utf-8").splitlines() if file is not None and file.exists() else []
        read = [Climb.model_validate_json(line) for line in lines]
        self._made = {(climb.made_in, climb.item): climb for climb in read}

    def made(self, made_in: str, item: str) -> Climb | None:
        """Result of *item* in the pass *made_in*; None if it is to be tried (again)."""
        return self._made.get((made_in, item))

    def keep(self, climb: Climb) -> Climb:
        """Write *climb* down, unless it was cut short."""
        if self._file is not None and not climb.is_cut_short:
            with self._file.open("a", encoding="utf-8") as lines:
                lines.write(f"{climb.model_dump_json()}\n")
        return climb
