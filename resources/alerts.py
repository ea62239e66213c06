"""Notifies about failed runs, failed checks and late months; disabled by default."""

from __future__ import annotations

import os

from pydantic import SecretStr

from formulacode_dagster.operating.monitoring.channels import Channel, Mail, Slack, Webhook
from formulacode_dagster.operating.monitoring.secrets import SecretFilter, secret_values

from .base import SettingsResource, setting


class AlertsResource(SettingsResource):
    """Hands out the channels. Their addresses, FC_ALERT_WEBHOOK, FC_ALERT_SLACK and FC_SMTP_URL, are secrets."""

    alert_mail_to: list[str] | None = setting("alert_mail_to")
    alert_mail_from: str | None = setting("alert_mail_from")
    dagster_url: str | None = setting("dagster_url")

    def preflight(self) -> tuple[bool, str]:
        """Return the recipients; sends nothing."""
        names = [channel.name for channel in self.channels()]
        if not names:
            return True, "FC_ALERT_WEBHOOK, FC_ALERT_SLACK and FC_ALERT_MAIL_TO are empty: alerts are disabled"
        return True, f"alerts go to {', '.join(names)}"

    def channels(self) -> tuple[Channel, ...]:
        """The channels that are set."""
        settings = self.settings
        channels: list[Channel] = []
        if url := settings.alert_webhook.get_secret_value():
            channels.append(Webhook(url))
        if url := settings.alert_slack.get_secret_value():
            channels.append(Slack(url))
        if settings.alert_mail_to:
            url = settings.smtp_url.get_secret_value() or "smtp://localhost"
            channels.append(Mail(url, settings.alert_mail_from, settings.alert_mail_to))
        return tuple(channels)

    def secrets(self) -> SecretFilter:
        """Text that no message may contain: secrets of the settings, and credentials of the environment."""
        values = [getattr(self.settings, name) for name in type(self.settings).model_fields]
        own = [value.get_secret_value() for value in values if isinstance(value, SecretStr)]
        path = self.settings.hf_token_path
        if path is not None and path.is_file():
            own.append(path.read_text(encoding="utf-8", errors="replace").strip())
        return SecretFilter([*own, *secret_values(os.environ)])

    def run_url(self, run_id: str) -> str:
        """Return the UI's URL of the run; empty if FC_DAGSTER_URL is."""
        url = self.settings.dagster_url.rstrip("/")
        return f"{url}/runs/{run_id}" if url else ""
