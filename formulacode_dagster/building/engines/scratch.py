"""Temporary folders for a build or the inspection of an image; those of killed processes are recognizable.

They may be large (a repository's history), or secret (access to the package index).
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .folders import remove_tree
from .owner import Owner

_PREFIX = "formulacode-scratch-"
_OWNER = "owner.json"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """An empty folder that only this user can read, and that is gone afterwards."""
    place = Path(tempfile.mkdtemp(prefix=_PREFIX))
    try:
        (place / _OWNER).write_text(Owner.current("").model_dump_json())
        # a unique name: BuildKit takes contexts of one name for versions of each other
        folder = place / place.name.removeprefix(_PREFIX)
        folder.mkdir()
        yield folder
    finally:
        remove_tree(place)


def abandoned_scratch() -> tuple[Path, ...]:
    """Scratch folders of this user whose process is gone."""
    return tuple(place for place in sorted(Path(tempfile.gettempdir()).glob(f"{_PREFIX}*")) if _is_abandoned(place))


def _is_abandoned(place: Path) -> bool:
    try:
        owner = Owner.parse((place / _OWNER).read_bytes())
    except OSError:
        # another user's, or one that is being made or removed just now
        return False
    return owner is not None and owner.is_dead()
