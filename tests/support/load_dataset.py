"""The `datasets` library's content of each config, by revision, as JSON. Runs in a separate environment."""

import json
import sys
from typing import Any

import datasets

name, *revisions = sys.argv[1:]
datasets.disable_progress_bars()
loaded: dict[str, dict[str, Any]] = {}
for revision in revisions:
    for config in datasets.get_dataset_config_names(name, revision=revision):
        rows = datasets.load_dataset(name, config, revision=revision, split="train")
        loaded.setdefault(revision, {})[config] = {
            "ids": sorted(set(rows["task_id"])),
            "columns": rows.column_names,
            "types": {column: str(kind) for column, kind in rows.features.items()},
            "last": rows[-1] if rows.num_rows else None,
        }
json.dump(loaded, sys.stdout, default=str)
