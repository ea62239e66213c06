"""Logs of runs for programs: one JSON object per line, if FC_JSON_LOG is set."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

from resources.settings import read_settings

PARTITION = "dagster/partition"


class JsonLines(logging.Formatter):
    """One object per line: time, level, run, job, month, step, item, event, message, error; empty ones are left out.

    Month is the partition, a dashboard's name for its assets.
    """

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        told = getattr(record, "dagster_meta", {})
        event = told.get("dagster_event")
        failure = event.step_failure_data if event is not None and event.is_step_failure else None
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "run": told.get("run_id"),
            "job": told.get("job_name"),
            "month": told.get("job_tags", {}).get(PARTITION),
            "step": told.get("step_key"),
            "item": getattr(record, "item", ""),
            "event": event.event_type_value if event is not None else "",
            "message": told.get("orig_message") or record.getMessage(),
            "error": failure.error.to_string() if failure is not None and failure.error is not None else "",
        }
        return json.dumps({name: value for name, value in line.items() if value}, ensure_ascii=False)


class JsonLog(logging.Handler):
    """Appends to FC_JSON_LOG, nothing if that is empty; `dagster.yaml` adds it to every run's log.

    A disk that is full costs lines, and no run.
    """

    def __init__(self) -> None:
        """Read the setting."""
        super().__init__()
        self._path = read_settings().json_log
        self.setFormatter(JsonLines())

    def emit(self, record: logging.LogRecord) -> None:
        """Append a line."""
        if self._path is None:
            return
        try:
            # opened for each line: Dagster closes no handler, and log rotation moves the file away
            with self._path.open("a", encoding="utf-8") as file:
                file.write(f"{self.format(record)}\n")
        except OSError:
            self.handleError(record)
