"""Open a site by its address: a folder is read directly, anything else is downloaded first."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from formulacode_dagster.operating.cancellation.loops import run_loop

from .download import Download, download
from .server import Server
from .site import read_site
from .sites import folder_of
from .tables import SiteTables

SITE_FOLDER = "site"
"""Folder of the downloaded site, next to its tables."""


@dataclass(frozen=True)
class Scraped:
    """A site and its download; None for a folder."""

    site: SiteTables
    download: Download | None


def scrape(address: str, folder: Path) -> Scraped:
    """Read the site at *address*, downloaded below *folder* unless it is on this disk.

    Raises DashboardError when it cannot be had, OutsideSystemError when the disk is full.
    """
    on_disk = folder_of(address)
    if on_disk is not None:
        return Scraped(read_site(on_disk), None)
    place = folder / SITE_FOLDER

    async def fetch() -> Download:
        async with Server(address) as server:
            return await download(server, place)

    fetched = run_loop(fetch())
    return Scraped(read_site(place, fetched.faults), fetched)
