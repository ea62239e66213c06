"""`croissant.json`: the content of the dataset, in MLCommons' Croissant 1.0 (https://docs.mlcommons.org/croissant)."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any, get_args, get_origin

from pydantic.fields import FieldInfo

from formulacode_dagster.models.base import Frozen
from formulacode_dagster.models.columns import plain_type
from formulacode_dagster.models.release import TaskRecord

from .index import NO_LICENSE, DatasetIndex
from .parquet import KEY
from .tables import data_path, reviewed_path, table_path, verified_path
from .task_tables import TABLES

CROISSANT_FILE = "croissant.json"
CONFORMS_TO = "http://mlcommons.org/croissant/1.0"
_REPOSITORY = "repository"
_CHECKSUM_OF_GIT = "https://github.com/mlcommons/croissant/issues/80"
"""Placeholder for a required checksum: Croissant has none for a repository, and the Hub writes the same."""
_CONTEXT: dict[str, Any] = {
    "@language": "en",
    "@vocab": "https://schema.org/",
    "cr": "http://mlcommons.org/croissant/",
    "dct": "http://purl.org/dc/terms/",
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    **{name: {"@id": f"cr:{name}", "@type": "@json"} for name in ("data", "examples")},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    **{
        name: f"cr:{name}"
        for name in (
            *("citeAs", "column", "equivalentProperty", "extract", "field", "fileObject", "fileProperty", "fileSet"),
            *("format", "includes", "isLiveDataset", "jsonPath", "key", "md5", "parentField", "path", "recordSet"),
            *("references", "regex", "repeated", "replace", "samplingRate", "separator", "source", "subField"),
            "transform",
        )
    },
}
"""Context of the specification, verbatim: readers compare it with theirs."""
_TYPES: dict[Any, str] = {
    str: "sc:Text",
    bool: "sc:Boolean",
    int: "sc:Integer",
    float: "sc:Float",
    datetime: "sc:DateTime",
}


def croissant(index: DatasetIndex, url: str) -> bytes:
    """Return the document of a dataset with these months at *url*; `` for a folder, where it lies next to the files.

    Its fields are the columns that every month has, so that each can be read; the card names later ones.
    """
    licenses = sorted({name for month in index.months for name in month.licenses} - {NO_LICENSE})
    repository = {
        "@type": "cr:FileObject",
        "@id": _REPOSITORY,
        "name": _REPOSITORY,
        "description": "The dataset's git repository.",
        "contentUrl": url,
        "encodingFormat": "git+https",
        "sha256": _CHECKSUM_OF_GIT,
    }
    sets: dict[str, tuple[type[Frozen], str, str]] = {
        "default": (TaskRecord, "", data_path("*")),
        "verified": (TaskRecord, "", verified_path("*")),
        **({"reviewed": (TaskRecord, "", reviewed_path("*"))} if index.reviewed else {}),
        **{table.value: (model, f"{table}.", table_path(table, "*")) for table, model in TABLES.items()},
    }
    document = {
        "@context": _CONTEXT,
        "@type": "sc:Dataset",
        "conformsTo": CONFORMS_TO,
        "name": "FormulaCode",
        "description": "Tasks in which code has to be made faster, each measured to be possible.",
        "keywords": ["code", "performance-optimization", "benchmark"],
        "license": licenses or ["other"],
        **({"url": url} if url else {}),
        "distribution": [
            *([repository] if url else []),
            *(_files(name, path, bool(url)) for name, (_, _, path) in sets.items()),
        ],
        "recordSet": [_records(name, model, _lacking(index, prefix)) for name, (model, prefix, _) in sets.items()],
    }
    return json.dumps(document, indent=1, ensure_ascii=False).encode() + b"\n"


def _lacking(index: DatasetIndex, prefix: str) -> Callable[[str], bool]:
    """Return True if a month with the table of this *prefix* lacks one of its columns."""
    noted = [{name.removeprefix(prefix) for name in month.columns if name.startswith(prefix)} for month in index.months]
    return lambda column: any(columns and column not in columns for columns in noted)


def _files(name: str, path: str, is_repository: bool) -> dict[str, Any]:
    return {
        "@type": "cr:FileSet",
        "@id": f"{name}-files",
        "name": f"{name}-files",
        "description": f"A file for each month of `{name}`.",
        **({"containedIn": {"@id": _REPOSITORY}} if is_repository else {}),
        "encodingFormat": "application/x-parquet",
        "includes": path,
    }


def _records(name: str, model: type[Frozen], is_lacking: Callable[[str], bool]) -> dict[str, Any]:
    files = {"fileSet": {"@id": f"{name}-files"}}
    columns = {column: field for column, field in model.model_fields.items() if not is_lacking(column)}
    return {
        "@type": "cr:RecordSet",
        "@id": name,
        "name": name,
        "description": model.__doc__ or "",
        **({"key": {"@id": f"{name}/{KEY}"}} if model is TaskRecord else {}),
        "field": [
            _field(f"{name}/{column}", field, {**files, "extract": {"column": column}})
            for column, field in columns.items()
        ],
    }


def _field(path: str, field: FieldInfo, source: dict[str, Any]) -> dict[str, Any]:
    """Describe a column, or a part of one: lists are `repeated`, and structs have a `subField` for each part."""
    plain = plain_type(field.annotation)
    is_list = get_origin(plain) is tuple
    inner = plain_type(get_args(plain)[0]) if is_list else plain
    told = {
        "@type": "cr:Field",
        "@id": path,
        "name": path,
        "description": field.description or "",
        **({"repeated": True} if is_list else {}),
    }
    if inner in _TYPES:
        return {**told, "dataType": _TYPES[inner], "source": source}
    parts = [
        _field(f"{path}/{name}", part, {**source, "transform": {"jsonPath": name}})
        for name, part in inner.model_fields.items()
    ]
    return {**told, "subField": parts}
