"""The GitHub that the months of a database are from: those of a sandbox and of a real one are never mixed."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy import Connection

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.operating.store.repositories import record_github, recorded_github, repositories_seen

from .transport.addresses import LOCAL, PUBLIC

SAMPLE = (900101, "sample-org/gridpath")
"""Id and name of a repository that only the demo's GitHub has."""
SAMPLE_IDS = frozenset(range(900101, 900107))
"""Ids of all repositories of the demo's GitHub."""


def require_same_github(connection: Connection, host: str, known: Collection[str] = ()) -> None:
    """Raise ConfigurationError if months are from another GitHub than *host*; *known* are all of its names, if given.

    Where none is recorded, the repositories decide as far as they can, and those of a home with samples and real ones
    fit either: homes have a record since their last intake by a platform that makes one.
    """
    recorded = recorded_github(connection)
    if recorded:
        if recorded != host:
            raise _mixed(recorded, host)
        return
    seen = repositories_seen(connection)
    if host == PUBLIC and SAMPLE in seen and all(id_ in SAMPLE_IDS for id_, _ in seen):
        raise _mixed(LOCAL, host)
    names = {name.lower() for name in known}
    if names and seen and not any(name.lower() in names for _, name in seen):
        raise _mixed(f"elsewhere ({min(name for _, name in seen)})", host)


def record_same_github(connection: Connection, host: str) -> None:
    """Record *host* as the GitHub of the months, as soon as there are some; raises as `require_same_github`."""
    require_same_github(connection, host)
    if not recorded_github(connection) and repositories_seen(connection):
        record_github(connection, host)
        # another run may have recorded its own meanwhile
        require_same_github(connection, host)


def _mixed(recorded: str, host: str) -> ConfigurationError:
    return ConfigurationError(
        f"this home has months of {_described(recorded)}, and none of {_described(host)} may be added",
        why="samples and real repositories would be judged and released together",
        remedy=f"Set another FC_HOME for {host}, and another FC_DATABASE_URL if that is set; or the GITHUB_API_URL of "
        f"these months; or, if they are to continue with {host}, run in their database: {_statements(host)}",
    )


def _statements(host: str) -> str:
    return f"DELETE FROM months_github; INSERT INTO months_github VALUES (1, '{host}', now())"  # noqa: S608 - for people


def _described(host: str) -> str:
    return f"{host} (a sandbox, such as the demo's)" if host == LOCAL else host
