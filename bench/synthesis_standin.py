#!/usr/bin/env python3
"""Stands in for a coding agent: reads the log of the last attempt by a few rules, and writes edit.toml.

It runs inside the container of the `command` adapter, with only the standard library. Its rules go beyond the repair
rules, and it is no model: it costs only time.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

WORKSPACE, TASK = Path("/ws"), Path("/task")
VARIABLE = re.compile(r"KeyError: '([A-Z][A-Z0-9_]+)'")
VERSION = re.compile(r"(?:ImportError|AttributeError): .*module '?(?P<module>[A-Za-z_]\w*)'?")
COMMAND = re.compile(r"(?:command not found|No such file or directory): '?(?P<name>[a-z][a-z0-9+-]+)'?$")


def main() -> None:
    """Write the proposal of the first matching rule; leave edit.toml unchanged without one."""
    sys.stdin.read()
    logs = sorted((TASK / "attempts").rglob("*"), key=lambda path: path.name)
    text = "\n".join(path.read_text(errors="replace") for path in logs if path.is_file())
    spec = json.loads((TASK / "spec.json").read_text())
    tried = json.dumps(spec.get("fixes", []))
    for line in reversed(text.splitlines()):
        edit = edit_for(line)
        if edit and not all(word in tried for word in re.findall(r'"([^"]+)"', edit)):
            reason = json.dumps(line.strip()[:300])
            (WORKSPACE / "edit.toml").write_text(f"reason = {reason}\n{edit}\n")
            print(f"answering: {line.strip()[:300]}")
            return
    print("no rule of mine knows this log")


def edit_for(line: str) -> str:
    """Return the proposal for *line*, as a line of edit.toml; `` if it has none."""
    if found := VARIABLE.search(line):
        return f'environment = {{ "{found[1]}" = "1" }}'
    if found := COMMAND.search(line):
        return f'system_packages = ["{found["name"]}"]'
    if found := VERSION.search(line):
        return f'requirements = ["{found["module"]}"]'
    return ""


if __name__ == "__main__":
    main()
