"""Built images that the months still need: housekeeping checks them before it removes one."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Connection, Subquery, Text, and_, cast, func, select
from sqlalchemy.sql.selectable import FromClause

from formulacode_dagster.models.image import ImageNeed
from formulacode_dagster.models.items import ItemState, Stage
from formulacode_dagster.operating.store import artifacts
from formulacode_dagster.operating.store.tables import LEDGER, MERGED_PULL_REQUESTS

_NOWHERE = ("no_registry", "process_engine")
"""Why an image that was measured is not published, and will not be with these settings."""
_NEVER = datetime.fromtimestamp(0, tz=UTC)

IMAGES, RELEASES = artifacts.IMAGES.table, artifacts.RELEASES.table


def image_needs(connection: Connection) -> dict[str, ImageNeed]:
    """Need of every image in the database, by digest; if several tasks share one digest, the most demanding need.

    An unfinished month needs an image from the moment it is built until its task is rejected by the measurement, or
    published. A failed measurement or publication may be tried again, so the image stays; a release ends all of it.
    """
    facts = MERGED_PULL_REQUESTS
    item = facts.c.repository.concat("#").concat(cast(facts.c.number, Text))
    built, measured, published = (_entry(stage) for stage in (Stage.IMAGES, Stage.MEASUREMENTS, Stage.PUBLISHED_IMAGES))
    same = and_(*(facts.c[key.name] == IMAGES.c[key.name] for key in facts.primary_key))
    released = select(RELEASES.c.month).where(RELEASES.c.month == IMAGES.c.month).exists()
    source: FromClause = IMAGES.outerjoin(facts, same)
    for entry in (built, measured, published):
        source = source.outerjoin(entry, and_(entry.c.month == IMAGES.c.month, entry.c.item == item))
    statement = select(
        func.coalesce(item, "").label("item"),
        IMAGES.c.month,
        func.jsonb_extract_path_text(IMAGES.c.document, "digest").label("digest"),
        func.greatest(built.c.finished_at, measured.c.finished_at, published.c.finished_at).label("last"),
        released.label("released"),
        built.c.state.label("built"),
        measured.c.state.label("measured"),
        published.c.state.label("published"),
        published.c.reason.label("why_not_published"),
    ).select_from(source)
    needs: dict[str, ImageNeed] = {}
    for row in connection.execute(statement):
        faster = row.measured == ItemState.DONE.value
        settled = (
            row.published == ItemState.DONE.value or row.why_not_published in _NOWHERE
            if faster
            else (row.measured == ItemState.REJECTED.value)
        )
        need = ImageNeed(
            item=row.item,
            month=row.month,
            digest=row.digest,
            last=row.last or _NEVER,
            unfinished=not row.released and row.built == ItemState.DONE.value and not settled,
            only_copy=faster and row.published != ItemState.DONE.value,
        )
        need_before = needs.get(need.digest)
        needs[need.digest] = need if need_before is None else _both(need_before, need)
    return needs


def _entry(stage: Stage) -> Subquery:
    """Return the ledger's entries for *stage*, by month and item."""
    columns = (LEDGER.c.month, LEDGER.c.item, LEDGER.c.state, LEDGER.c.reason, LEDGER.c.finished_at)
    return select(*columns).where(LEDGER.c.stage == stage.value).subquery(f"ended_{stage.value}")


def _both(need: ImageNeed, other: ImageNeed) -> ImageNeed:
    demanding = other if other.unfinished and not need.unfinished else need
    only_copy = need.only_copy or other.only_copy
    return demanding.model_copy(update={"last": max(need.last, other.last), "only_copy": only_copy})
