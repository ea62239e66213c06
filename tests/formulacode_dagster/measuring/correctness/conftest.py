"""Fixtures that these tests share with those of measuring."""

from tests.support.measurement import engine_of, git_patch, image, lay, session

__all__ = ["engine_of", "git_patch", "image", "lay", "session"]
