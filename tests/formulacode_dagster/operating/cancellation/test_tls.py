from __future__ import annotations

from pathlib import Path

import pytest

from formulacode_dagster.operating.cancellation.tls import trusted
from tests.support import running


def test_certificates_are_read_once_until_others_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    nobody = Path(running.__file__).with_name("nobody.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(nobody))
    first = trusted()
    assert [entry["subject"] for entry in first.get_ca_certs()] != []
    assert trusted() is first
    monkeypatch.delenv("SSL_CERT_FILE")
    assert trusted() is not first
    monkeypatch.setenv("SSL_CERT_FILE", str(nobody))
    assert trusted() is first
