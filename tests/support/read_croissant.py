"""Findings of `mlcroissant` about documents, and its reads by them, as JSON. Runs in a separate environment."""

import json
import logging
import sys
import warnings
from typing import Any

import mlcroissant

logging.disable()
warnings.simplefilter("ignore")


def plain(value: Any) -> Any:
    """Text, which the library gives as bytes, as text; dates as text too."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list):
        return [plain(part) for part in value]
    if isinstance(value, bytes):
        return value.decode()
    return value if value is None or isinstance(value, str | bool | int | float) else str(value)


def told(path: str) -> dict[str, Any]:
    """Why a document is refused, or what each table that it describes holds; nothing where it names a repository."""
    try:
        dataset = mlcroissant.Dataset(path)
    except mlcroissant.ValidationError as error:
        return {"error": str(error)}
    tables = [] if dataset.metadata.file_objects else dataset.metadata.record_sets
    return {"records": {table.uuid: [plain(row) for row in dataset.records(table.uuid)] for table in tables}}


json.dump([told(path) for path in sys.argv[1:]], sys.stdout)
