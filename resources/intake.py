"""Source of repositories and pull requests, and the rules for tracking repositories."""

from __future__ import annotations

from formulacode_dagster.models.intake import IntakeSource
from formulacode_dagster.models.items import Stage
from formulacode_dagster.sources.github.links import LinkSource
from formulacode_dagster.sources.github.tracking import TrackingRules
from formulacode_dagster.sources.offline.completion import MirrorCompletion
from formulacode_dagster.sources.offline.detect import detect

from .base import SettingsResource, setting
from .github import GitHubResource
from .mirrors import MirrorsResource

ANY = "any"
"""Default of `FC_LANGUAGES`: an empty value stands for the default, as for every setting."""


class IntakeResource(GitHubResource, MirrorsResource):
    """Provides the source of intake: the one that FC_OFFLINE_SOURCE names, completed from mirrors, else GitHub."""

    def source(self, stage: Stage, month: str, run_id: str) -> IntakeSource:
        """Return a source, an async context manager; its GitHub requests are recorded for the three stages.

        Raises ConfigurationError when FC_OFFLINE_SOURCE names nothing that can be read.
        """
        if not self.settings.offline_source:
            return super().source(stage, month, run_id)
        return detect(self.settings.offline_source).open(MirrorCompletion(self.cache()))

    def links(self, stage: Stage, month: str, run_id: str) -> LinkSource | None:
        """Return the walker of pull requests' references; None offline and without a token: only GitHub knows them."""
        if self.settings.offline_source or not self.settings.github_tokens:
            return None
        return LinkSource(self.client(stage), stage, month, run_id)

    def state(self) -> str:
        """Fingerprint of the source, part of intake's inputs: it changes with the source or its files."""
        return detect(self.settings.offline_source).state() if self.settings.offline_source else ""

    def preflight(self) -> tuple[bool, str]:
        """Probe GitHub, or describe the offline source; raises as they do."""
        if not self.settings.offline_source:
            return super().preflight()
        return True, f"{detect(self.settings.offline_source)}; GitHub is not asked, GH_TOKENS is not needed"


class TrackingResource(SettingsResource):
    """Criteria for repositories."""

    minimum_stars: int | None = setting("minimum_stars")
    languages: list[str] | None = setting("languages")

    def rules(self) -> TrackingRules:
        """The rules."""
        languages = self.settings.languages
        return TrackingRules(
            minimum_stars=self.settings.minimum_stars,
            languages=() if ANY in (name.lower() for name in languages) else languages,
        )
