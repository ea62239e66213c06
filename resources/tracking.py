"""The rules by which repositories are tracked."""

from __future__ import annotations

from formulacode_dagster.sources.github.tracking import TrackingRules

from .base import SettingsResource, setting

ANY = "any"
"""Of `FC_LANGUAGES`: an empty value stands for the default, as of every setting."""


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
