"""The registry that images are pushed to."""

from __future__ import annotations

from typing import Any, Literal, cast

import dagster as dg

from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.release.registry import Registry


class RegistryResource(dg.ConfigurableResource[Any]):
    """Hands out the registry client, or nothing where no registry is set."""

    url: str
    namespace: str
    username: str
    password: str
    mode: str

    def preflight(self) -> tuple[bool, str]:
        """Ask the registry for its version endpoint."""
        import httpx

        if not self.url:
            return True, "FC_REGISTRY_URL is empty: images are built and measured, not published"
        scheme = "http" if self.url.startswith(("127.", "localhost")) else "https"
        host = "registry-1.docker.io" if self.url == "docker.io" else self.url
        try:
            answer = httpx.get(f"{scheme}://{host}/v2/", timeout=20)
        except httpx.HTTPError as error:
            raise OutsideSystemError(
                "registry", f"{self.url} does not answer", why=str(error), remedy="Start it, or fix FC_REGISTRY_URL"
            ) from error
        return answer.status_code in (200, 401), f"{self.url} answers {answer.status_code}"

    def client(self) -> Registry | None:
        """The client; None when the settings name no registry."""
        if not self.url:
            return None
        if self.mode not in ("single", "mirror"):
            raise ConfigurationError(f"FC_REGISTRY_MODE is {self.mode!r}", remedy="Write single or mirror")
        mode = cast("Literal['single', 'mirror']", self.mode)
        return Registry(self.url, self.namespace, self.username, self.password, mode)
