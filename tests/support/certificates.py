"""A certificate of 127.0.0.1 for a server of a test."""

from __future__ import annotations

import subprocess
from pathlib import Path


def make_certificate(folder: Path) -> tuple[Path, Path]:
    """Write a key, and a certificate that vouches for itself, into *folder*; returns their paths."""
    key, certificate = folder / "key.pem", folder / "ca.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    made = ["openssl", "req", "-x509", *curve, "-keyout", str(key), "-out", str(certificate), *subject]
    subprocess.run(made, check=True, capture_output=True)
    return key, certificate
