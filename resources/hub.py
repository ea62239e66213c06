"""Where the dataset goes: the Hugging Face Hub, or a folder."""

from __future__ import annotations

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.release.destination import Destination
from formulacode_dagster.release.folder import FolderDestination
from formulacode_dagster.release.hub import HubDestination

from .base import SettingsResource, setting


class HubResource(SettingsResource):
    """Hands out the destination of the dataset. Its token is HF_TOKEN, or lies in the file of HF_TOKEN_PATH."""

    home: str | None = setting("home")
    dataset_dir: str | None = setting("dataset_dir")
    hf_dataset: str | None = setting("hf_dataset")
    hf_endpoint: str | None = setting("hf_endpoint")
    hf_token_path: str | None = setting("hf_token_path")

    def preflight(self) -> tuple[bool, str]:
        """Ask the destination for its tags."""
        destination = self.destination()
        return True, f"{destination.name} answers, {len(destination.tags())} releases"

    def destination(self) -> Destination:
        """The Hub where HF_DATASET names a dataset, else the folder FC_DATASET_DIR."""
        if not self.settings.hf_dataset:
            return FolderDestination(self.settings.dataset_root)
        return HubDestination(self.settings.hf_dataset, self.settings.hf_endpoint, self._token())

    def _token(self) -> str:
        token, path = self.settings.hf_token.get_secret_value(), self.settings.hf_token_path
        if token or path is None:
            return token
        try:
            return path.expanduser().read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigurationError(
                f"HF_TOKEN_PATH names {path}",
                why=str(error),
                remedy="Write the token there, or set HF_TOKEN",
            ) from error
