"""The registry that images are pushed to."""

from __future__ import annotations

from typing import Any, Literal, cast

import dagster as dg

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.release.registry import Registry


class RegistryResource(dg.ConfigurableResource[Any]):
    """Hands out the registry client, or nothing where no registry is set."""

    url: str
    namespace: str
    username: str
    password: str
    mode: str

    def client(self) -> Registry | None:
        """The client; None when the settings name no registry."""
        if not self.url:
            return None
        if self.mode not in ("single", "mirror"):
            raise ConfigurationError(f"FC_REGISTRY_MODE is {self.mode!r}", remedy="Write single or mirror")
        mode = cast("Literal['single', 'mirror']", self.mode)
        return Registry(self.url, self.namespace, self.username, self.password, mode)
