"""Content of an image: each distribution with its version and the hash of every file, as found, not as claimed.

A distribution's RECORD lists its files (PyPA, "Recording installed projects"); their hashes are computed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from formulacode_dagster.building.engines.files import Area
from formulacode_dagster.models.image import InstalledDistribution

from .facts import FileFact, ImageFacts
from .tamper_scan import installed, site_packages

UNOWNED = "(no distribution)"
"""Name for the files of the environment that no RECORD lists."""
MISSING = "missing"
"""In place of a hash: a RECORD lists the file, and it is missing."""
_HOW_INSTALLED = ("INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_cache.json")
"""Files of a `.dist-info` in which the installer writes about its own doing."""


@dataclass(frozen=True)
class Listing:
    """A distribution and its files."""

    name: str
    version: str
    files: Mapping[str, str]
    """By path below the environment: SHA-256 as a RECORD writes it, `-> target` for a link, or `missing`."""

    @property
    def text(self) -> str:
        """One stored line for each file, sorted."""
        return "".join(f"{path}\t{content}\n" for path, content in sorted(self.files.items()))

    @property
    def summary(self) -> InstalledDistribution:
        """Value for a row of `images`."""
        digest = hashlib.sha256(self.text.encode()).hexdigest()
        return InstalledDistribution(name=self.name, version=self.version, files=len(self.files), sha256=digest)

    @classmethod
    def of(cls, kept: InstalledDistribution, text: str) -> Listing:
        """The listing that *kept* sums up, from its `text`."""
        lines = [line.rpartition("\t") for line in text.splitlines()]
        return cls(kept.name, kept.version, {path: content for path, _, content in lines})


def listings(facts: ImageFacts) -> tuple[Listing, ...]:
    """Every distribution of the environment, by name; last, if there are any, the files that belong to none.

    Bytecode is left out: no build depends on it, and it holds the time at which its source was written.
    """
    listings: list[Listing] = []
    owned: set[str] = set()
    for distribution in installed(facts, Area.ENVIRONMENT, site_packages(facts)):
        owned |= distribution.record.keys()
        files = {path: _content(facts.environment.get(path)) for path in distribution.record if _counts(path)}
        listings.append(Listing(distribution.name, distribution.version, files))
    rest = {path: _content(fact) for path, fact in facts.environment.items() if path not in owned and _counts(path)}
    ordered = sorted(listings, key=lambda listing: (listing.name, listing.version))
    return (*ordered, *([Listing(UNOWNED, "", rest)] if rest else []))


def _counts(path: str) -> bool:
    folder, _, name = path.rpartition("/")
    return not name.endswith(".pyc") and not (folder.endswith(".dist-info") and name in _HOW_INSTALLED)


def _content(fact: FileFact | None) -> str:
    if fact is None:
        return MISSING
    return fact.sha256 if fact.target is None else f"-> {fact.target}"
