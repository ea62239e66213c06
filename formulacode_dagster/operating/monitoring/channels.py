"""Channels of messages (a webhook, Slack, mail), and delivery to all of them: a dead one affects no other."""

from __future__ import annotations

import smtplib
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from formulacode_dagster.models.errors import ConfigurationError, FormulaCodeError, OutsideSystemError
from formulacode_dagster.operating.cancellation.backoff import Backoff

from .alert import Alert

SECONDS = 10.0
TRIES = 3
WAITS = Backoff(first_seconds=1.0, longest_seconds=5.0)
SLACK_TEXT = 2900
"""Characters of a block of Slack's, which takes 3,000."""
_TRY_AGAIN = (408, 425, 429)
_PORTS = {"smtp": 25, "smtps": 465}


class Channel(Protocol):
    """One way to reach people."""

    @property
    def name(self) -> str:
        """Name of the channel in errors; its address is a secret."""

    def send(self, alert: Alert) -> None:
        """Hand over *alert*.

        Raises OutsideSystemError for a temporary failure, ConfigurationError for a permanent one.
        """


@dataclass(frozen=True)
class Webhook:
    """A POST of the message as JSON, with the fields of `Alert` and its title."""

    url: str
    name: str = "webhook"

    def send(self, alert: Alert) -> None:
        """Post it."""
        _post(self.name, self.url, {**alert.model_dump(mode="json"), "title": alert.title})


@dataclass(frozen=True)
class Slack:
    """An incoming webhook (https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks)."""

    url: str
    name: str = "slack"

    def send(self, alert: Alert) -> None:
        """Post it as blocks; texts of repositories can neither link nor mention anyone."""
        texts = [f"*{_escaped(alert.title)}*", *map(_escaped, alert.lines())]
        block = {"type": "section", "text": {"type": "mrkdwn", "text": "\n".join(texts)[:SLACK_TEXT]}}
        _post(self.name, self.url, {"text": _escaped(alert.title), "blocks": [block]})


@dataclass(frozen=True)
class Mail:
    """Mail through a server: `smtp://user:password@host:587`, with TLS if the server offers it, or `smtps://`."""

    url: str
    sender: str
    recipients: Sequence[str]
    name: str = "mail"

    def send(self, alert: Alert) -> None:
        """Hand it to the server. A password is sent over TLS only."""
        message = EmailMessage()
        message["Subject"] = alert.title
        message["From"] = self.sender
        message["To"] = ", ".join(self.recipients)
        message.set_content("\n\n".join([alert.title, *alert.lines()]) + "\n")
        try:
            with self._server() as server:
                server.send_message(message)
        except (smtplib.SMTPAuthenticationError, smtplib.SMTPRecipientsRefused, smtplib.SMTPSenderRefused) as error:
            raise _refused(self.name, type(error).__name__) from error
        except smtplib.SMTPNotSupportedError as error:
            raise _refused(self.name, "the server offers no TLS, or no login") from error
        except (OSError, smtplib.SMTPException) as error:
            raise _silent(self.name, type(error).__name__) from error

    def _server(self) -> smtplib.SMTP:
        parts = urlsplit(self.url)
        try:
            port = parts.port or _PORTS[parts.scheme]
        except (KeyError, ValueError):
            raise ConfigurationError(
                "FC_SMTP_URL names no mail server", remedy="Write smtp://user:password@host:587, or smtps://host:465"
            ) from None
        trust = ssl.create_default_context()
        host = parts.hostname or "localhost"
        if parts.scheme == "smtps":
            server: smtplib.SMTP = smtplib.SMTP_SSL(host, port, timeout=SECONDS, context=trust)
        else:
            server = smtplib.SMTP(host, port, timeout=SECONDS)
        try:
            server.ehlo()
            if parts.scheme == "smtp" and (parts.password or server.has_extn("starttls")):
                server.starttls(context=trust)
            if parts.password:
                server.login(unquote(parts.username or ""), unquote(parts.password))
        except BaseException:
            server.close()
            raise
        return server


def _post(name: str, url: str, payload: Mapping[str, Any]) -> None:
    import httpx

    try:
        answer = httpx.post(url, json=payload, timeout=SECONDS)
    except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
        raise _refused(name, type(error).__name__) from error
    except httpx.HTTPError as error:
        raise _silent(name, type(error).__name__) from error
    if answer.status_code in _TRY_AGAIN or answer.is_server_error:
        raise _silent(name, f"status {answer.status_code}")
    if not answer.is_success:
        raise _refused(name, f"status {answer.status_code}")


def _silent(name: str, why: str) -> OutsideSystemError:
    return OutsideSystemError(name, "takes no message", why=why, remedy="Look at its server")


def _refused(name: str, why: str) -> ConfigurationError:
    settings = {"webhook": "FC_ALERT_WEBHOOK", "slack": "FC_ALERT_SLACK", "mail": "FC_SMTP_URL and FC_ALERT_MAIL_TO"}
    return ConfigurationError(f"{name} refuses messages", why=why, remedy=f"Look at {settings[name]}")


def _escaped(text: str) -> str:
    """Escape Slack's mrkdwn control characters."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def deliver(
    alert: Alert, channels: Sequence[Channel], *, sleep: Callable[[float], None] = time.sleep
) -> tuple[FormulaCodeError, ...]:
    """Send *alert* by all of *channels*, three times at most; returns why each failed that could not take it."""
    failures = (_failure(alert, channel, sleep) for channel in channels)
    return tuple(failure for failure in failures if failure is not None)


def _failure(alert: Alert, channel: Channel, sleep: Callable[[float], None]) -> FormulaCodeError | None:
    for tries in range(1, TRIES + 1):
        try:
            channel.send(alert)
        except ConfigurationError as error:
            return error
        except OutsideSystemError as error:
            if tries == TRIES:
                return error
            sleep(WAITS.seconds(tries))
        else:
            return None
    return None
