"""The environment of this process, made ready before a setting is read: `.env`, and whom to trust."""

from __future__ import annotations

import os
import ssl
from pathlib import Path

from formulacode_dagster.models.errors import ConfigurationError

SYSTEM_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
"""Where systems keep the certificates they trust: Debian, Red Hat, SUSE, Alpine and macOS."""


def prepare_environment() -> None:
    """Add what `.env` holds, and the certificates the system trusts, where the environment says nothing of them.

    Raises ConfigurationError naming the line of `.env` that cannot be read.
    """
    load_env_file()
    trust_system_certificates()


def trust_system_certificates() -> None:
    """Have `SSL_CERT_FILE` name the system's certificates where nothing names others.

    HTTP clients and uv bring certificates of their own, which lack the one of a proxy that only the system knows.
    """
    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        return
    places = (ssl.get_default_verify_paths().cafile, *SYSTEM_BUNDLES)
    if bundle := next((place for place in places if place and Path(place).is_file()), None):
        os.environ["SSL_CERT_FILE"] = bundle


def load_env_file(path: Path | None = None) -> None:
    """Put the variables of `.env` into the environment, where they are not set yet.

    All of them: `.env` may also hold what other programs read, such as DOCKER_HOST.
    Raises ConfigurationError naming the line that cannot be read.
    """
    from dotenv.parser import parse_stream

    path = path or Path(".env")
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as stream:
        for binding in parse_stream(stream):
            if binding.error:
                # what cannot be read begins with the empty lines before it
                text = binding.original.string
                empty = text[: len(text) - len(text.lstrip())].count("\n")
                raise ConfigurationError(
                    f"{path}, line {binding.original.line + empty} cannot be read",
                    remedy="Write NAME=value on each line, quotes closed; see .env.example",
                )
            if binding.key and binding.value is not None:
                os.environ.setdefault(binding.key, binding.value)
