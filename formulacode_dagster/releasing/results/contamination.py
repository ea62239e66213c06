"""Marks of contamination: was a task's solution public before the end of the model's training data?"""

from __future__ import annotations

import csv
import fnmatch
import functools
import io
from collections.abc import Sequence
from datetime import UTC, date, datetime
from importlib.resources import files
from pathlib import Path

from pydantic import ValidationError

from formulacode_dagster.models.agent_run import Contamination
from formulacode_dagster.models.base import Frozen, first_fault
from formulacode_dagster.models.errors import ConfigurationError

SHIPPED = "cutoffs.csv"
SCRIPTED = frozenset({"oracle", "nop"})
"""Agents that have no model."""


class ModelCutoff(Frozen):
    """A row of the table: the last day of the training data of the models whose names match."""

    model: str
    """Name, or a pattern with `*`, without the provider."""
    cutoff: date
    source: str = ""


class Cutoffs(Frozen):
    """The table of models and their cut-offs; the first matching row counts."""

    rows: tuple[ModelCutoff, ...]

    @classmethod
    def read(cls, file: Path | None = None) -> Cutoffs:
        """Return the rows of *file*, CSV with the columns `model`, `cutoff` and `source`, before the package's own.

        Raises ConfigurationError for another file.
        """
        return cls(rows=(*(_rows_of(file) if file else ()), *_shipped()))

    def of(self, model: str) -> date | None:
        """Return the cut-off of *model*, `provider/name`; None if it is not in the table."""
        name = model.rpartition("/")[2].lower()
        return next((row.cutoff for row in self.rows if fnmatch.fnmatchcase(name, row.model.lower())), None)

    def mark(self, agent: str, model: str, merged_at: datetime) -> Contamination:
        """Return the mark of a run by *agent* with *model* on a task that was merged then.

        A merge on the day of the cut-off, or before, may be in the training data.
        """
        if not model:
            return Contamination.NO if agent in SCRIPTED else Contamination.UNKNOWN
        cutoff = self.of(model)
        if cutoff is None:
            return Contamination.UNKNOWN
        return Contamination.YES if merged_at.astimezone(UTC).date() <= cutoff else Contamination.NO


def _rows_of(file: Path) -> Sequence[ModelCutoff]:
    try:
        return _parse(file.read_text())
    except (OSError, UnicodeDecodeError) as error:
        reason = str(error)
    except ValidationError as error:
        reason = first_fault(error)
    raise ConfigurationError(
        f"{file} is no table of models",
        why=reason,
        remedy="Write CSV with the columns model, cutoff (YYYY-MM-DD) and source; or unset FC_MODEL_CUTOFFS",
    )


@functools.cache
def _shipped() -> tuple[ModelCutoff, ...]:
    return _parse(files(__package__).joinpath(SHIPPED).read_text())


def _parse(text: str) -> tuple[ModelCutoff, ...]:
    rows = csv.DictReader(io.StringIO(text))
    return tuple(ModelCutoff.model_validate({k: v for k, v in row.items() if k and v is not None}) for row in rows)
