"""Whether a built image is what it claims to be: gates, run by the host in one order, ended by the first failure."""

from __future__ import annotations

from .gates import ORDER
from .sequence import Verified, verify_image

__all__ = ["ORDER", "Verified", "verify_image"]
