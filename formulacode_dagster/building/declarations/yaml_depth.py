"""Depth of a YAML file: libyaml's composer recurses in C, and ends the process on a file that is nested too deep."""

from __future__ import annotations

from itertools import accumulate

_DEEPEST = 100


def require_shallow(text: str) -> None:
    """Raise ValueError if *text* is nested too deep to be composed, and YAMLError for invalid YAML before that."""
    import yaml

    starts = (yaml.SequenceStartEvent, yaml.MappingStartEvent)
    ends = (yaml.SequenceEndEvent, yaml.MappingEndEvent)
    events = yaml.parse(text, Loader=yaml.CSafeLoader)
    if any(depth > _DEEPEST for depth in accumulate(isinstance(e, starts) - isinstance(e, ends) for e in events)):
        raise ValueError(f"nested deeper than {_DEEPEST} levels")
