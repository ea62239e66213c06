"""The fixtures of this room, which others use too."""

from tests.support.measurement import engine_of, git_patch, image, lay, measurement, pull_request, samples, session

__all__ = ["engine_of", "git_patch", "image", "lay", "measurement", "pull_request", "samples", "session"]
