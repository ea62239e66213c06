"""Orphaned containers: those of killed processes, here or on another machine.

A daemon may serve several machines. Whether a process of another machine lives cannot be determined from here; whether
its run is over can. If that is unknown, a leftover ends by itself (`LIFETIME_SECONDS`), and is removed an hour after
its end, or once it is older than any session gets.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from formulacode_dagster.building.engines.owner import Owner

from .daemon import LABEL, DockerDaemon

if TYPE_CHECKING:
    from docker.models.containers import Container

LIFETIME_SECONDS = 24 * 3600
"""Seconds after which an orphaned container ends by itself."""
ENDED = timedelta(hours=1)
OLD = timedelta(days=2)
GRADED_IN = f"{LABEL}.evaluate"
"""Label of images that tasks are graded or verified in."""


RunIsOver = Callable[[str], bool]
"""Whether the run of that id ended long enough ago that none of its processes lives any more."""


def nobody_knows(_run_id: str) -> bool:
    """The default if runs are not known: none is certainly over."""
    return False


def leftover_containers(
    daemon: DockerDaemon, *, now: datetime | None = None, run_is_over: RunIsOver = nobody_knows
) -> list[Container]:
    """Containers that dead processes, or runs that are over, have left as of *now*; others are not ours to touch."""
    import docker.errors

    left: list[Container] = []
    with daemon.watched("list containers"):
        # A container inherits its image's labels, so `formulacode=1` by itself would also mark one that a user started.
        for listed in daemon.client.api.containers(all=True, filters={"label": f"{LABEL}.owner"}):
            owner = Owner.parse(listed["Labels"].get(f"{LABEL}.owner", ""))
            if owner is not None and owner.is_alive():
                # not asked about: while the files of an image are read, the daemon does not answer for its container
                continue
            with suppress(docker.errors.NotFound):
                container = daemon.client.containers.get(listed["Id"])
                if _is_left(container, owner, now or datetime.now(tz=UTC), run_is_over):
                    left.append(container)
    return left


def remove_leftovers(daemon: DockerDaemon, run_is_over: RunIsOver = nobody_knows) -> list[Container]:
    """Remove the result of `leftover_containers`, and return it; also images of sessions' copies, of gradings and of
    verifications.
    """
    containers = leftover_containers(daemon, run_is_over=run_is_over)
    for container in containers:
        remove_container(daemon, container)
    _remove_images(daemon, run_is_over)
    return containers


def _remove_images(daemon: DockerDaemon, run_is_over: RunIsOver) -> None:
    """Remove the images that sessions were copied through, or tasks graded or verified in, and that were left."""
    import docker.errors

    with daemon.watched("remove images that were left"):
        # not by `images.list`, which asks about each again: another run may remove its own meanwhile
        images = daemon.client.api.images(filters={"label": f"{LABEL}.owner", "dangling": True})
        # one with a tag but without this label is a copy that somebody made
        images += daemon.client.api.images(filters={"label": [f"{LABEL}.owner", GRADED_IN]})
        for image in images:
            owner = Owner.parse(image["Labels"].get(f"{LABEL}.owner", ""))
            if owner is not None and _has_left(owner, run_is_over):
                # one that another machine's container still uses stays
                with suppress(docker.errors.APIError):
                    daemon.client.images.remove(image["Id"])


def remove_container(daemon: DockerDaemon, container: Container) -> None:
    """Remove *container* with its volumes, even while it runs; one that is gone is fine."""
    import docker.errors

    with daemon.watched(f"remove {container.name}"), suppress(docker.errors.NotFound):
        try:
            container.remove(force=True, v=True)
        except docker.errors.APIError as error:
            if "already in progress" not in str(error):
                raise


def _has_left(owner: Owner, run_is_over: RunIsOver) -> bool:
    """Return True if *owner* is certainly gone; a living process is not, even if its run is reported as over."""
    return owner.is_dead() or (not owner.is_alive() and bool(owner.run_id) and run_is_over(owner.run_id))


def _is_left(container: Container, owner: Owner | None, now: datetime, run_is_over: RunIsOver) -> bool:
    if owner is not None and _has_left(owner, run_is_over):
        return True
    made, state = datetime.fromisoformat(container.attrs["Created"]), container.attrs["State"]
    if container.status in ("exited", "dead"):
        return now - datetime.fromisoformat(state["FinishedAt"]) >= ENDED
    return now - made >= (ENDED if container.status == "created" else OLD)
