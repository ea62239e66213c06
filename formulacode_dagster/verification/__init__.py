"""Whether a built image is what it claims to be: verified by the host in one order, up to the first failure."""

from __future__ import annotations

from .verifications import VERIFICATION_NAMES
from .verify import ImageVerification, verify_image

__all__ = ["VERIFICATION_NAMES", "ImageVerification", "verify_image"]
