"""The fixtures of this room, which others use too."""

from tests.support.measurement import lay, session

__all__ = ["lay", "session"]
