"""Base of all resources: their fields are settings, with the environment as default."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import dagster as dg
from pydantic import Field

from .settings import Settings, alias_of, read_settings


def setting(name: str) -> Any:
    """A field for the setting of that *name*: None, unless a run or a test gives it a value."""
    return Field(default=None, description=f"{alias_of(name)}: {Settings.model_fields[name].description}")


class SettingsResource(dg.ConfigurableResource[Any]):
    """A resource that reads its settings on first use, so that loading definitions reads nothing.

    A field has the name and type of its setting. Secrets are never fields: Dagster stores and shows the launchpad's
    values. A secret is read from its environment variable when needed, and referred to only by that name.
    """

    @cached_property
    def settings(self) -> Settings:
        """The settings with the values of this resource's fields; raises ConfigurationError."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return read_settings({name: value for name, value in fields.items() if value is not None})
