"""A site as a static Space of the Hub: the folder as it is, in one commit."""

from __future__ import annotations

from pathlib import Path

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.cancellation.stopping import stop_request
from formulacode_dagster.releasing.dataset.hub_client import hub_api, hub_errors, patiently
from resources.destination import hub_token
from resources.settings import Settings

REPO_TYPE = "space"


def publish_space(site: Path, space: str, settings: Settings) -> str:
    """Put the *site* into the static *space*, `owner/name`, made where it is missing; returns its address.

    Pages that it has and the folder lacks go. Raises ConfigurationError where the Hub refuses us or without a token,
    OutsideSystemError where it is dead.
    """
    token = hub_token(settings)
    if not token:
        raise ConfigurationError(f"no token for the Space {space}", remedy="Set HF_TOKEN to one that may write there")
    api, sleep = hub_api(settings.hf_endpoint, token), stop_request().sleep
    with hub_errors(f"write the site to the Space {space} at {settings.hf_endpoint}", token):
        patiently(lambda: api.create_repo(space, repo_type=REPO_TYPE, space_sdk="static", exist_ok=True), sleep)
        patiently(
            lambda: api.upload_folder(
                repo_id=space,
                repo_type=REPO_TYPE,
                folder_path=site,
                delete_patterns="*",
                commit_message="Write the site anew",
            ),
            sleep,
        )
    return f"{settings.hf_endpoint.rstrip('/')}/spaces/{space}"
