"""A registry, as far as gradings and replays need one."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol


class ImagePuller(Protocol):
    """Pulls images; implemented by `publishing.Registry`."""

    def pulled(self, reference: str, digest: str) -> AbstractContextManager[str]:
        """Yield the content digest of the image that *reference* has under *digest*, present as long as the block."""
