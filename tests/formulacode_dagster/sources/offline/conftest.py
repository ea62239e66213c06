"""The fixtures of this room, which others use too."""

from tests.support.offline import mirrors, no_network, write

__all__ = ["mirrors", "no_network", "write"]
