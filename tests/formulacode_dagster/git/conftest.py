"""The fixtures of this room, which others use too."""

from tests.support.git_origin import cache, git_host, mirror_of, origin

__all__ = ["cache", "git_host", "mirror_of", "origin"]
