"""The registry that images are pushed to."""

from __future__ import annotations

from formulacode_dagster.models.errors import OutsideSystemError
from formulacode_dagster.releasing.registries.accounts import Account
from formulacode_dagster.releasing.registries.client import Limits, base_url
from formulacode_dagster.releasing.registries.ecr import EcrAccount
from formulacode_dagster.releasing.registries.publishing import Registry

from .base import SettingsResource, setting
from .setting_types import RegistryMode


class RegistryResource(SettingsResource):
    """Provides the registry client, or None without a registry. Its password is DOCKERHUB_TOKEN."""

    registry_url: str | None = setting("registry_url")
    dockerhub_namespace: str | None = setting("dockerhub_namespace")
    dockerhub_username: str | None = setting("dockerhub_username")
    registry_mode: RegistryMode | None = setting("registry_mode")
    registry_repository: str | None = setting("registry_repository")
    registry_retry_seconds: float | None = setting("registry_retry_seconds")
    push_concurrency: int | None = setting("push_concurrency")

    def preflight(self) -> tuple[bool, str]:
        """Ask the registry for its version endpoint, and whether we may push there."""
        import httpx

        url = self.settings.registry_url
        if not url:
            return True, "FC_REGISTRY_URL is empty: images are built and measured, not published"
        try:
            answer = httpx.get(f"{base_url(url)}/v2/", timeout=20)
        except httpx.HTTPError as error:
            raise OutsideSystemError(
                "registry", f"{url} does not answer", why=str(error), remedy="Start it, or fix FC_REGISTRY_URL"
            ) from error
        if answer.status_code not in (200, 401):
            return False, f"{url} answers {answer.status_code}"
        self.puller().require_write()
        return True, f"{url} answers, and accepts our account"

    def client(self) -> Registry | None:
        """The client; None when the settings name no registry."""
        return self.puller() if self.settings.registry_url else None

    def puller(self) -> Registry:
        """Return the client for images of any registry; the password is sent only to the configured one."""
        settings = self.settings
        password = settings.dockerhub_token.get_secret_value()
        amazon = EcrAccount.of(settings.registry_url)
        return Registry(
            settings.registry_url,
            settings.dockerhub_namespace,
            amazon or Account(settings.dockerhub_username, password),
            settings.registry_mode.value,
            Limits(settings.registry_retry_seconds),
            settings.registry_repository,
            web=settings.github_web,
        )
