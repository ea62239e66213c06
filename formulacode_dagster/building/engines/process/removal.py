"""Removal in the background: on a busy disk a session's folder takes a second to remove."""

from __future__ import annotations

import logging
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from formulacode_dagster.building.engines.folders import remove_tree
from formulacode_dagster.operating.cancellation.stopping import stop_request

MOST_WAITING = 8
"""Folders that wait to be removed: a disk does not fill up with them, nor does a process end long after its work."""

_places = threading.BoundedSemaphore(MOST_WAITING)
_remover = ThreadPoolExecutor(1, thread_name_prefix="removal")


def remove_in_background(folder: Path, removed: Path) -> None:
    """Move *folder* into the folder *removed* at once, and remove it there before this process ends.

    The caller waits for it only if too many removals are queued, or when the process is about to stop.
    """
    if not folder.exists():
        return
    removed.mkdir(exist_ok=True)
    # whoever moves a folder elsewhere has to be allowed to write in it
    folder.chmod(stat.S_IRWXU)
    folder = folder.rename(removed / folder.name)
    if stop_request().requested or not _places.acquire(blocking=False):
        remove_tree(folder)
    else:
        _remover.submit(_remove, folder)


def finish_removals() -> None:
    """Wait until all moved folders are removed: otherwise removing the parent folder would find them half removed."""
    _remover.submit(lambda: None).result()


def _remove(folder: Path) -> None:
    try:
        remove_tree(folder)
    except OSError as error:
        logging.getLogger(__name__).warning("%s could not be removed, housekeeping will try again: %s", folder, error)
    finally:
        _places.release()
