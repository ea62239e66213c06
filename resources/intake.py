"""Where repositories and pull requests come from, and the rules by which repositories are tracked."""

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
"""Of `FC_LANGUAGES`: an empty value stands for the default, as of every setting."""


class IntakeResource(GitHubResource, MirrorsResource):
    """Hands out the source of intake: what FC_OFFLINE_SOURCE names, completed from mirrors, else GitHub."""

    def source(self, stage: Stage, month: str, run_id: str) -> IntakeSource:
        """A source, to be used as an async context manager; what it asks of GitHub is booked for the three.

        Raises ConfigurationError when FC_OFFLINE_SOURCE names nothing that can be read.
        """
        if not self.settings.offline_source:
            return super().source(stage, month, run_id)
        return detect(self.settings.offline_source).open(MirrorCompletion(self.cache()))

    def links(self, stage: Stage, month: str, run_id: str) -> LinkSource | None:
        """Who follows the references of pull requests; None offline and without a token: only GitHub knows them."""
        if self.settings.offline_source or not self.settings.github_tokens:
            return None
        return LinkSource(self.client(stage), stage, month, run_id)

    def state(self) -> str:
        """Part of the inputs of what is taken in: another one when the source is, or when what lies there changed."""
        return detect(self.settings.offline_source).state() if self.settings.offline_source else ""

    def preflight(self) -> tuple[bool, str]:
        """Ask GitHub, or say what the offline source is; raises as they do."""
        if not self.settings.offline_source:
            return super().preflight()
        return True, f"{detect(self.settings.offline_source)}; GitHub is not asked, GH_TOKENS is not needed"


class TrackingResource(SettingsResource):
    """What a repository has to be."""

    minimum_stars: int | None = setting("minimum_stars")
    languages: list[str] | None = setting("languages")

    def rules(self) -> TrackingRules:
        """The rules."""
        languages = self.settings.languages
        return TrackingRules(
            minimum_stars=self.settings.minimum_stars,
            languages=() if ANY in (name.lower() for name in languages) else languages,
        )
