"""The allow and deny list of repositories. Like GitHub, it ignores the case of names."""

from __future__ import annotations

from sqlalchemy import Connection, delete, func, select
from sqlalchemy.dialects.postgresql import insert

from formulacode_dagster.models.errors import ConfigurationError
from formulacode_dagster.models.identity import ItemName
from formulacode_dagster.models.intake import ListedRepository

from .tables import LISTED_REPOSITORIES


def put_listed(connection: Connection, listed: ListedRepository) -> None:
    """List a repository, replacing earlier decisions; raises ConfigurationError unless it is `owner/repo`."""
    name = _repository(listed.full_name)
    row = {**listed.model_dump(), "full_name": name, "verdict": listed.verdict.value}
    statement = insert(LISTED_REPOSITORIES).values(row)
    changes = {column: statement.excluded[column] for column in row}
    connection.execute(
        statement.on_conflict_do_update(index_elements=[func.lower(LISTED_REPOSITORIES.c.full_name)], set_=changes)
    )


def remove_listed(connection: Connection, full_name: str) -> bool:
    """Take a repository off the list; whether it was on it. ConfigurationError unless it is `owner/repo`."""
    name = _repository(full_name).lower()
    removed = connection.execute(delete(LISTED_REPOSITORIES).where(func.lower(LISTED_REPOSITORIES.c.full_name) == name))
    return removed.rowcount > 0


def listed(connection: Connection) -> dict[str, ListedRepository]:
    """The whole list, by name in lower case and in its order."""
    rows = connection.execute(select(LISTED_REPOSITORIES)).mappings()
    listings = [ListedRepository.model_validate(dict(row)) for row in rows]
    return {
        listing.full_name.lower(): listing
        for listing in sorted(listings, key=lambda listing: listing.full_name.lower())
    }


def _repository(full_name: str) -> str:
    # a name that can never match would be a decision that is never applied
    name = ItemName.parse(full_name)
    if name.number is not None:
        raise ConfigurationError(
            f"{full_name!r} is a pull request", remedy="The list contains repositories: write it as owner/repo"
        )
    return name.repository
