"""Destination of the dataset, by the settings; for scripts too, so without Dagster."""

from __future__ import annotations

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.releasing.dataset.destination import Destination
from formulacode_dagster.releasing.dataset.folder import FolderDestination
from formulacode_dagster.releasing.dataset.hub import HubDestination

from .settings import Settings


def open_destination(settings: Settings) -> Destination:
    """Return the Hub if HF_DATASET names a dataset, else the folder FC_DATASET_DIR."""
    if not settings.hf_dataset:
        return FolderDestination(settings.dataset_root)
    return HubDestination(settings.hf_dataset, settings.hf_endpoint, hub_token(settings))


def hub_token(settings: Settings) -> str:
    """Return HF_TOKEN, or the content of the file HF_TOKEN_PATH; raises ConfigurationError if that cannot be read."""
    token, path = settings.hf_token.get_secret_value(), settings.hf_token_path
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
