"""A throw-away repository that reads another's objects and writes its own: the other one is never touched."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def scratch_repository(repository: Path) -> Iterator[Path]:
    """Its folder, gone afterwards. It knows of no server, so objects that *repository* lacks stay missing."""
    with tempfile.TemporaryDirectory(prefix="fc-scratch-") as folder:
        scratch = Path(folder)
        (scratch / "HEAD").write_text("ref: refs/heads/none\n")
        (scratch / "refs").mkdir()
        (scratch / "objects" / "info").mkdir(parents=True)
        (scratch / "objects" / "info" / "alternates").write_text(f"{repository.resolve() / 'objects'}\n")
        yield scratch
