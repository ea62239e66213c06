"""Prepares the environment of this process before a setting is read: `.env`, and trusted certificates."""

from __future__ import annotations

import logging
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
"""System paths of trusted certificates: Debian, Red Hat, SUSE, Alpine and macOS."""
RENAMED_VARIABLES = {
    "FC_MEASURED_AT_ONCE": "FC_MEASUREMENT_CONCURRENCY",
    "FC_PUSHED_AT_ONCE": "FC_PUSH_CONCURRENCY",
    "FC_DATABASE_BEHIND_POOLER": "FC_DATABASE_TRANSACTION_POOLING",
    "DOCKERHUB_SINGLE_REPO": "FC_REGISTRY_REPOSITORY",
    "DOCKERHUB_RATE_LIMIT_WAIT": "FC_REGISTRY_RETRY_SECONDS",
}
"""Current name of each variable by its former one, which is still read."""
_logger = logging.getLogger(__name__)


def prepare_environment() -> None:
    """Load `.env`, and the system's certificates, where the environment has no values for them.

    Raises ConfigurationError naming the line of `.env` that cannot be read.
    """
    load_env_file()
    rename_variables()
    trust_system_certificates()


def rename_variables() -> None:
    """Move values of RENAMED_VARIABLES to their current names, with a warning; a value of the current name wins."""
    for former, current in RENAMED_VARIABLES.items():
        if (value := os.environ.pop(former, None)) is not None:
            _logger.warning("%s is now called %s. Rename it in the environment or in .env.", former, current)
            os.environ.setdefault(current, value)


def trust_system_certificates() -> None:
    """Set `SSL_CERT_FILE` to the system's certificates unless others are set.

    HTTP clients and uv bring certificates of their own, which lack the one of a proxy that only the system knows.
    """
    if os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR"):
        return
    places = (ssl.get_default_verify_paths().cafile, *SYSTEM_BUNDLES)
    if bundle := next((place for place in places if place and Path(place).is_file()), None):
        os.environ["SSL_CERT_FILE"] = bundle


def load_env_file(path: Path | None = None) -> None:
    """Load the variables of `.env` into the environment, unless they are set.

    All of them: `.env` may also hold variables of other programs, such as DOCKER_HOST. Raises ConfigurationError naming
    the unreadable line.
    """
    from dotenv.parser import parse_stream

    path = path or Path(".env")
    if not path.exists():
        return
    with path.open(encoding="utf-8", errors="replace") as stream:
        for binding in parse_stream(stream):
            if binding.error:
                # an unreadable line starts with the empty lines before it
                text = binding.original.string
                empty = text[: len(text) - len(text.lstrip())].count("\n")
                raise ConfigurationError(
                    f"{path}, line {binding.original.line + empty} cannot be read",
                    remedy="Write NAME=value on each line, quotes closed; see .env.example",
                )
            if binding.key and binding.value is not None:
                os.environ.setdefault(binding.key, binding.value)
