"""Destination of the dataset: the Hugging Face Hub, or a folder."""

from __future__ import annotations

from functools import cached_property

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.month import Month
from formulacode_dagster.releasing.dataset.destination import Destination, ReleasedMonth
from formulacode_dagster.releasing.results.contamination import Cutoffs

from .base import SettingsResource, setting
from .destination import open_destination


class HubResource(SettingsResource):
    """Provides the destination of the dataset. Its token is HF_TOKEN, or in the file HF_TOKEN_PATH."""

    home: str | None = setting("home")
    dataset_dir: str | None = setting("dataset_dir")
    hf_dataset: str | None = setting("hf_dataset")
    hf_endpoint: str | None = setting("hf_endpoint")
    hf_token_path: str | None = setting("hf_token_path")
    model_cutoffs: str | None = setting("model_cutoffs")

    def preflight(self) -> tuple[bool, str]:
        """Ask the destination for its tags, and whether we may write there."""
        destination = self.destination()
        destination.require_write()
        return True, f"{destination.name} answers, {len(destination.tags())} releases"

    def destination(self) -> Destination:
        """Return the Hub if HF_DATASET names a dataset, else the folder FC_DATASET_DIR."""
        return open_destination(self.settings)

    def released(self, month: Month) -> ReleasedMonth:
        """Return the newest release of *month* there, downloaded once; raises ConfigurationError if there is none.

        Each run has a resource of its own, so that the next one sees a revision.
        """
        if month.key in self.read_releases:
            return self.read_releases[month.key]
        destination = self.destination()
        released = destination.read(month)
        if released is None:
            raise ConfigurationError(
                f"{month} was never released to {destination.name}",
                remedy="Name the dataset that has it: HF_DATASET, or FC_DATASET_DIR for a folder",
            )
        self.read_releases[month.key] = released
        return released

    @cached_property
    def read_releases(self) -> dict[str, ReleasedMonth]:
        """Releases that this run has read, by month."""
        return {}

    def cutoffs(self) -> Cutoffs:
        """Return the table of models' cut-offs; raises ConfigurationError if FC_MODEL_CUTOFFS is none."""
        return Cutoffs.read(self.settings.model_cutoffs)
