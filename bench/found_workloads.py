"""Workloads found by `make yield LOGS=DIR`, stored so that `make bench-aa FOUND=DIR` need not search again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import ConfigDict

from formulacode_dagster.building.suites.overlays import SuiteFiles
from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.measurement import Source

ENDING = ".found.json"


class FoundWorkloads(Frozen):
    """The first workloads that execute the change of one pull request, and the files they are in."""

    model_config = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    item: str
    names: tuple[str, ...]
    suite: str
    source: Source
    commit: str
    files: dict[str, bytes] | None
    """Overlay on the checkout; None for files the checkout has."""

    @classmethod
    def of(cls, item: str, names: Sequence[str], suite: SuiteFiles) -> FoundWorkloads:
        """The workloads *names* of *suite*."""
        files = None if suite.files is None else dict(suite.files)
        return cls(
            item=item, names=tuple(names), suite=suite.name, source=suite.source, commit=suite.commit, files=files
        )

    @property
    def laid(self) -> SuiteFiles:
        """The files, as they overlay every arm."""
        return SuiteFiles(self.suite, self.files, self.source, self.commit)

    def keep(self, folder: Path) -> None:
        """Write it into *folder*, replacing an earlier one."""
        (folder / f"{stem(self.item)}{ENDING}").write_text(self.model_dump_json(), "utf-8")


def stem(item: str) -> str:
    """File name for *item*, without the extension."""
    return item.replace("/", "__").replace("#", "-")


def kept_in(folder: Path) -> dict[str, FoundWorkloads]:
    """Return the stored workloads in *folder*, by item; raises ValueError for a foreign file."""
    found = [FoundWorkloads.model_validate_json(path.read_bytes()) for path in sorted(folder.glob(f"*{ENDING}"))]
    return {each.item: each for each in found}
