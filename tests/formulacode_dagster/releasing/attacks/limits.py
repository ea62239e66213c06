"""Attacks that get a reward today, and honest patches that get none; remove an entry as soon as that has changed."""

from __future__ import annotations

from collections.abc import Mapping

KNOWN_LIMITS: Mapping[str, str] = {}
"""Why each attack gets through, by its name."""
KNOWN_REFUSALS: Mapping[str, str] = {}
"""Why each honest patch is refused, by its name."""
