"""The fixtures of this room, which others use too."""

from tests.support.measurement import engine_of, git_patch, image, lay, measurement, pull_request, samples, session
from tests.support.scripted_sampler import take
from tests.support.small_measurement import measure

__all__ = [
    "engine_of",
    "git_patch",
    "image",
    "lay",
    "measure",
    "measurement",
    "pull_request",
    "samples",
    "session",
    "take",
]
