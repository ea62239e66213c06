"""The rules by which repositories are tracked."""

from __future__ import annotations

from typing import Any

import dagster as dg

from formulacode_dagster.github.tracking import TrackingRules

from .settings import whole_number

ANY = "any"
"""Of `FC_LANGUAGES`: an empty value stands for the default, as of every setting."""


class TrackingResource(dg.ConfigurableResource[Any]):
    """What a repository has to be."""

    minimum_stars: str
    languages: str

    def rules(self) -> TrackingRules:
        """The rules; raises ConfigurationError for a number of stars that is none."""
        languages = tuple(name.strip() for name in self.languages.split(",") if name.strip())
        return TrackingRules(
            minimum_stars=whole_number("FC_MINIMUM_STARS", self.minimum_stars),
            languages=() if ANY in (name.lower() for name in languages) else languages,
        )
