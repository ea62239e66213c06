"""Where repositories and pull requests come from."""

from typing import Any

import dagster as dg

from formulacode_dagster.github.links import LinkSource
from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.intake import IntakeSource
from formulacode_dagster.models.items import Stage
from formulacode_dagster.offline.completion import MirrorCompletion
from formulacode_dagster.offline.detect import detect

from .github import GitHubResource
from .mirrors import MirrorsResource
from .settings import setting, value_of


class IntakeResource(dg.ConfigurableResource[Any]):
    """Hands out the source of intake: what FC_OFFLINE_SOURCE names, else GitHub.

    Its fields are those of the resources behind it: Dagster would start nested ones a second time.
    """

    offline: str
    api_url: str
    tokens: str
    home: str
    mirrors_folder: str
    clone_url: str
    gigabytes: str

    @property
    def github(self) -> GitHubResource:
        """GitHub."""
        return GitHubResource(url=self.api_url, tokens=self.tokens, home=self.home)

    @property
    def mirrors(self) -> MirrorsResource:
        """The mirrors that complete what files leave out."""
        return MirrorsResource(
            folder=self.mirrors_folder, home=self.home, clone_url=self.clone_url, gigabytes=self.gigabytes
        )

    def source(self, stage: Stage, month: str, run_id: str) -> IntakeSource:
        """A source, to be used as an async context manager; what it asks of GitHub is booked for the three.

        Raises ConfigurationError when FC_OFFLINE_SOURCE names nothing that can be read.
        """
        if not self.offline:
            return self.github.source(stage, month, run_id)
        return detect(self.offline).open(MirrorCompletion(self.mirrors.cache()))

    def links(self, stage: Stage, month: str, run_id: str) -> LinkSource | None:
        """Who follows the references of pull requests; None offline and without a token: only GitHub knows them."""
        if self.offline or not self.tokens.strip():
            return None
        return LinkSource(self.github.client(stage), stage, month, run_id)

    def state(self) -> str:
        """Part of the inputs of what is taken in: another one when the source is, or when what lies there changed."""
        return detect(self.offline).state() if self.offline else ""

    def preflight(self) -> tuple[bool, str]:
        """Ask GitHub, or say what the offline source is; raises as they do."""
        if not self.offline:
            return self.github.preflight()
        return True, f"{detect(self.offline)}; GitHub is not asked, GH_TOKENS is not needed"


def clone_url() -> str:
    """The value of GITHUB_CLONE_URL; where it is not set and intake is from a folder of mirrors, that folder."""
    offline = value_of("FC_OFFLINE_SOURCE")
    if offline and not isinstance(setting("GITHUB_CLONE_URL"), dg.EnvVar):
        try:
            mirrors = detect(offline).mirrors
        except ConfigurationError:
            # said when intake needs it; the code location loads all the same
            mirrors = None
        if mirrors is not None:
            return mirrors.as_uri()
    return setting("GITHUB_CLONE_URL")
