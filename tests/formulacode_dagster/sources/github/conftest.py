"""The fixtures of this room, which others use too."""

from tests.support.github import clock, connect, world

__all__ = ["clock", "connect", "world"]
