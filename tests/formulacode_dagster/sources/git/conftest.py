"""The fixtures of this room, which others use too."""

from tests.support.git_origin import begun_origin, cache, git_host, mirror_of, origin

__all__ = ["begun_origin", "cache", "git_host", "mirror_of", "origin"]
