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
    """Upload the *site* to the static *space*, `owner/name`, created if it is missing; return its address.

    Its pages that the folder lacks are deleted. Raises ConfigurationError without a token or if the Hub refuses us,
    OutsideSystemError if it is dead.
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
                commit_message="Write the site again",
            ),
            sleep,
        )
    return f"{settings.hf_endpoint.rstrip('/')}/spaces/{space}"
