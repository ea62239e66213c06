"""Each way to tell people, against a real server."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from formulacode_dagster.models.errors import ConfigurationError, OutsideSystemError
from formulacode_dagster.operating.monitoring.alert import Alert, AlertKind, FailedCheck
from formulacode_dagster.operating.monitoring.channels import TRIES, Mail, Slack, Webhook, deliver
from tests.support.certificates import make_certificate
from tests.support.receivers import Mailbox, receiving_mail, receiving_posts

NOWHERE = "http://127.0.0.1:9/hook/s3cret-path"
ALERT = Alert(
    kind=AlertKind.RUN_FAILED,
    job="month",
    run_id="abc",
    partition="2026-02",
    errors=("images: <!channel> & <https://evil|docs>",),
    checks=(FailedCheck(asset="images", check="verifications_hold", blocking=True, summary="1 does not"),),
)


def test_a_webhook_is_posted_every_field() -> None:
    with receiving_posts() as received:
        Webhook(received.url).send(ALERT)
    (payload,) = received.payloads
    assert payload == {
        "title": "formulacode: month 2026-02 failed",
        "kind": "run_failed",
        "job": "month",
        "run_id": "abc",
        "partition": "2026-02",
        "errors": ["images: <!channel> & <https://evil|docs>"],
        "checks": [{"asset": "images", "check": "verifications_hold", "blocking": True, "summary": "1 does not"}],
        "url": "",
    }


def test_slack_is_posted_blocks_in_which_no_text_calls_anybody() -> None:
    long = ALERT.model_copy(update={"errors": (*ALERT.errors, *("x" * 700 for _ in range(9)))})
    with receiving_posts() as received:
        Slack(received.url).send(ALERT)
        Slack(received.url).send(long)
    payload, longer = received.payloads
    assert payload["text"] == "formulacode: month 2026-02 failed"
    (block,) = payload["blocks"]
    assert block["text"]["type"] == "mrkdwn"
    assert block["text"]["text"].splitlines() == [
        "*formulacode: month 2026-02 failed*",
        "images: &lt;!channel&gt; &amp; &lt;https://evil|docs&gt;",
        "images/verifications_hold, blocking: 1 does not",
        "run abc",
    ]
    assert len(longer["blocks"][0]["text"]["text"]) < 3000


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    with receiving_mail() as mailbox:
        yield mailbox


def test_a_mail_has_the_title_as_its_subject_and_the_rest_as_its_text(mailbox: Mailbox) -> None:
    Mail(f"smtp://{mailbox.host}", "fc@example.org", ("ada@example.org", "bob@example.org")).send(ALERT)
    (message,) = mailbox.messages
    assert (message["Subject"], message["From"]) == ("formulacode: month 2026-02 failed", "fc@example.org")
    assert mailbox.recipients == [["ada@example.org", "bob@example.org"]]
    text = message.get_payload(decode=True)
    assert isinstance(text, bytes)
    assert "images/verifications_hold, blocking: 1 does not" in text.decode()


def test_a_password_is_told_over_tls_alone(mailbox: Mailbox) -> None:
    with pytest.raises(ConfigurationError, match="offers no TLS"):
        Mail(f"smtp://fc:passw0rd@{mailbox.host}", "fc@example.org", ("ada@example.org",)).send(ALERT)
    assert mailbox.messages == []


def test_a_recipient_that_is_refused_is_an_error_of_the_settings(mailbox: Mailbox) -> None:
    with pytest.raises(ConfigurationError, match="mail refuses messages: SMTPRecipientsRefused"):
        Mail(f"smtp://{mailbox.host}", "fc@example.org", ("nobody@example.org",)).send(ALERT)


@pytest.mark.parametrize("url", ["mail.example.org", "smtp://host:many", "http://host"])
def test_a_mail_server_that_is_none_is_named(url: str) -> None:
    with pytest.raises(ConfigurationError, match="FC_SMTP_URL names no mail server"):
        Mail(url, "fc@example.org", ("ada@example.org",)).send(ALERT)


@pytest.mark.parametrize(
    ("status", "error"),
    [(500, OutsideSystemError), (429, OutsideSystemError), (404, ConfigurationError), (302, ConfigurationError)],
)
def test_an_answer_that_is_no_yes_is_an_error_without_the_address(status: int, error: type[Exception]) -> None:
    with receiving_posts(status) as received, pytest.raises(error, match=f"status {status}") as raised:
        Slack(received.url).send(ALERT)
    assert "s3cret" not in str(raised.value)


def test_a_dead_channel_is_tried_three_times_and_blocks_no_other() -> None:
    waits: list[float] = []
    with receiving_posts(503) as received:
        channels = (Webhook(NOWHERE), Slack("no address s3cret"), Webhook(received.url))
        failures = deliver(ALERT, channels, sleep=waits.append)
    assert [type(failure) for failure in failures] == [OutsideSystemError, ConfigurationError]
    assert "s3cret" not in "".join(map(str, failures))
    assert len(received.payloads) == 2, "once refused for a moment, once taken"
    assert len(waits) == TRIES - 1 + 1


# what the mail server says of itself
@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS", "ignore:Session.login_data is deprecated")
@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
def test_a_login_goes_over_tls(scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, certificate = make_certificate(tmp_path)
    trust = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    trust.load_cert_chain(certificate, key)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    with receiving_mail(scheme, trust) as box:
        Mail(f"{scheme}://fc:p%40ssw0rd@{box.host}", "fc@example.org", ("ada@example.org",)).send(ALERT)
        with pytest.raises(ConfigurationError, match="SMTPAuthenticationError") as raised:
            Mail(f"{scheme}://fc:another@{box.host}", "fc@example.org", ("ada@example.org",)).send(ALERT)
    assert (len(box.messages), box.logins[0]) == (1, b"fc p@ssw0rd")
    assert "another" not in str(raised.value)
