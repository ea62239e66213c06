"""The file of results: samples with a hash over them, which a later run on the same machine continues."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from .contents import ArchiveRefusedError


def write_results(path: str, results: dict[str, Any]) -> None:
    """Write the results with a hash over them, by which a damaged file is recognized."""
    body = json.dumps(results, sort_keys=True)
    text = json.dumps({"sha256": _hash_of(body), "results": body})
    with open(f"{path}.new", "w") as file:
        file.write(text)
    os.replace(f"{path}.new", path)


def earlier_replays(path: str, results: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the replays in *path*, which new *results* are to continue; none if there is no such file, or none in it.

    Raises ArchiveRefusedError if it has anything else: results are written in its place.
    """
    if not os.path.exists(path):
        return []
    try:
        with open(path) as file:
            sealed = json.load(file)
        found = json.loads(sealed["results"])
        is_whole = sealed["sha256"] == _hash_of(sealed["results"])
    except (ValueError, KeyError, TypeError):
        is_whole = False
    if not is_whole:
        raise _refused(f"{path} is not as ./replay wrote it")
    if not found["replays"]:
        return []
    if any(found[name] != results[name] for name in ("version", "archive_sha256")):
        raise _refused(f"{path} has results of another archive")
    now, then = results["machine"], found["machine"]
    differing = [f"{name} {then.get(name)}, now {now[name]}" for name in now if then.get(name) != now[name]]
    if differing:
        raise _refused(f"{path} has results of another machine ({'; '.join(differing)})")
    replays: list[dict[str, Any]] = found["replays"]
    return replays


def _hash_of(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def _refused(why: str) -> ArchiveRefusedError:
    return ArchiveRefusedError(f"{why}; name another file with --results, or move this one away")
