"""Where the dataset goes: the Hugging Face Hub, or a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dagster as dg

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.release.destination import Destination
from formulacode_dagster.release.folder import FolderDestination
from formulacode_dagster.release.hub import HubDestination


class HubResource(dg.ConfigurableResource[Any]):
    """Hands out the destination of the dataset."""

    dataset: str
    endpoint: str
    token: str
    token_path: str
    home: str

    def preflight(self) -> tuple[bool, str]:
        """Ask the destination for its tags."""
        destination = self.destination()
        return True, f"{destination.name} answers, {len(destination.tags())} releases"

    def destination(self) -> Destination:
        """The Hub where HF_DATASET names a dataset, else the folder `dataset/` under FC_HOME."""
        if not self.dataset:
            return FolderDestination(Path(self.home) / "dataset")
        return HubDestination(self.dataset, self.endpoint, self._token())

    def _token(self) -> str:
        if self.token or not self.token_path:
            return self.token
        try:
            return Path(self.token_path).expanduser().read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigurationError(
                f"HF_TOKEN_PATH names {self.token_path}",
                why=str(error),
                remedy="Write the token there, or set HF_TOKEN",
            ) from error
