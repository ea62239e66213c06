"""Operational figures: waiting work, spending against budgets, disks, mirrors."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pydantic import Field
from sqlalchemy import Connection, func, select

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.items import Cost, ItemState, Stage
from formulacode_dagster.operating.runner.claims import shared_stages
from formulacode_dagster.operating.store.attempts import agent_costs
from formulacode_dagster.operating.store.spending import spending_of
from formulacode_dagster.operating.store.tables import LEDGER, SPENDING

RECENTLY = timedelta(days=31)
DAY = timedelta(days=1)


class RunCounts(Frozen):
    """Runs of Dagster."""

    queued: int
    under_way: int
    failed: int = Field(description="that ended so within a day")


class SharedStageStatus(Frozen):
    """A stage of a month that several runs share."""

    stage: Stage
    month: str
    free: int = Field(description="free items")


class ResourceUsage(Frozen):
    """Usage of a limited resource; limit None: unlimited."""

    what: str
    used: float
    limit: float | None
    unit: str

    @property
    def share(self) -> float:
        """Share of the limit; 0 without one."""
        return self.used / self.limit if self.limit else 0.0


class Operations(Frozen):
    """The current state of the platform."""

    taken_at: datetime
    runs: RunCounts
    queues: tuple[SharedStageStatus, ...]
    items: dict[str, int] = Field(description="of all months, by state, as their last try ended")
    budgets: tuple[ResourceUsage, ...] = Field(description="of months that spent something in the last 31 days")
    disks: tuple[ResourceUsage, ...] = Field(description="in bytes")
    mirrors: int
    mirrors_unused_days: float | None = Field(description="since the mirror longest unused was used; None: no mirror")
    backup_hours: float | None = Field(description="since the newest backup; None: there is none")


@dataclass(frozen=True)
class Budgets:
    """Limits of a month, and of its agents; None: no limit."""

    tokens: int | None
    dollars: float | None
    agent_tokens: int | None
    agent_dollars: float | None


@dataclass(frozen=True)
class MirrorUsage:
    """Number, size and oldest use of the mirrors that are kept."""

    count: int
    bytes: int
    last_used: datetime | None


@dataclass(frozen=True)
class PlatformFolders:
    """Folders of the platform, and usage of its mirrors."""

    home: Path
    mirrors: MirrorUsage
    mirrors_limit: int | None
    newest_backup: datetime | None


def look(connection: Connection, runs: RunCounts, budgets: Budgets, places: PlatformFolders) -> Operations:
    """Everything as of now; raises OSError when a disk cannot be read."""
    now = datetime.now(tz=UTC)
    mirrors = places.mirrors
    database = connection.execute(select(func.pg_database_size(func.current_database()))).scalar_one()
    disk = shutil.disk_usage(places.home)
    counted = connection.execute(select(LEDGER.c.state, func.count()).group_by(LEDGER.c.state))
    counts: dict[str, int] = {str(state): int(count) for state, count in counted}
    return Operations(
        taken_at=now,
        runs=runs,
        queues=tuple(
            SharedStageStatus(stage=it.stage, month=it.month, free=it.free) for it in shared_stages(connection)
        ),
        items={state.value: counts.get(state.value, 0) for state in ItemState},
        budgets=tuple(_spent(connection, budgets, now)),
        disks=(
            ResourceUsage(what=f"disk of {places.home}", used=disk.total - disk.free, limit=disk.total, unit="bytes"),
            ResourceUsage(what="mirrors", used=float(mirrors.bytes), limit=places.mirrors_limit, unit="bytes"),
            ResourceUsage(what="database", used=database, limit=None, unit="bytes"),
        ),
        mirrors=mirrors.count,
        mirrors_unused_days=None if mirrors.last_used is None else (now - mirrors.last_used) / DAY,
        backup_hours=None if places.newest_backup is None else (now - places.newest_backup) / timedelta(hours=1),
    )


def _spent(connection: Connection, budgets: Budgets, now: datetime) -> Iterator[ResourceUsage]:
    recent = select(SPENDING.c.month).where(SPENDING.c.spent_at > now - RECENTLY).distinct().order_by(SPENDING.c.month)
    for month in connection.execute(recent).scalars().all():
        spent = Cost.total(spending_of(connection, month).values())
        agents = Cost.total(agent_costs(connection, month).values())
        for what, cost, tokens, dollars in (
            (month, spent, budgets.tokens, budgets.dollars),
            (f"{month}, agents", agents, budgets.agent_tokens, budgets.agent_dollars),
        ):
            if cost.tokens_in or cost.dollars:
                yield ResourceUsage(what=what, used=cost.tokens_in + cost.tokens_out, limit=tokens, unit="tokens")
                yield ResourceUsage(what=what, used=cost.dollars, limit=dollars, unit="dollars")


def amount(value: float, unit: str) -> str:
    """*value* as a person reads it: `1.2 GB`, `3,400 tokens`, `$4.50`."""
    match unit:
        case "bytes":
            return f"{value / 1e9:.1f} GB"
        case "dollars":
            return f"${value:,.2f}"
    return f"{value:,.0f} {unit}"


def draw(uses: Sequence[ResourceUsage]) -> bytes:
    """A PNG: a bar for each of *uses* that has a limit, in red from nine tenths on."""
    import io

    from matplotlib.figure import Figure

    limited = [use for use in uses if use.limit]
    figure = Figure(figsize=(9, 0.46 * max(len(limited), 1) + 0.7), layout="constrained")
    axes = figure.subplots()
    rows = range(len(limited))
    shares = [min(use.share, 1.0) for use in limited]
    axes.barh(rows, [1.0] * len(limited), color="#e4e7eb", height=0.66)
    axes.barh(rows, shares, color=["#b5494b" if share >= 0.9 else "#3b6ea5" for share in shares], height=0.66)
    for row, use in zip(rows, limited, strict=True):
        text = f"{amount(use.used, use.unit)} of {amount(use.limit or 0, use.unit)}"
        axes.annotate(text, (0.01, row), va="center", size=8, color="#1f2933", parse_math=False)
    axes.set_yticks(list(rows), [use.what for use in limited], parse_math=False)
    axes.set_ylim(max(len(limited), 1) - 0.5, -0.5)
    axes.set_xlim(0, 1)
    axes.set_xticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    axes.spines[:].set_visible(False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=140)
    return buffer.getvalue()
