"""Takes out of built wheels the requirements that no installer of today can read, lest it refuse the whole wheel.

A script for Python 3.7 and later: `python readable_metadata.py WHEEL…`. What the package needs is locked; of a
requirement nothing is lost but its line. Grammar: https://packaging.python.org/en/latest/specifications/dependency-specifiers/
"""

from __future__ import annotations

import base64
import hashlib
import re
import sys
import zipfile
from pathlib import Path

VERSION = (
    r"v?(\d+!)?\d+(\.\d+)*(\.\*)?([-_.]?(a|b|c|rc|alpha|beta|pre|preview)[-_.]?\d*)?"
    r"([-_.]?(post|rev|r)[-_.]?\d*|-\d+)?([-_.]?dev[-_.]?\d*)?(\+[a-z0-9]+([-_.][a-z0-9]+)*)?"
)
CLAUSE = rf"(~=|===?|!=|<=|>=|<|>)\s*{VERSION}"
CLAUSES = rf"{CLAUSE}(\s*,\s*{CLAUSE})*\s*,?"
REQUIREMENT = re.compile(
    rf"[a-z0-9]([\w.-]*[a-z0-9])?\s*(\[[^\]]*\])?\s*(\(\s*{CLAUSES}\s*\)|{CLAUSES}|@\s*\S+)?\s*(;.*)?",
    re.IGNORECASE | re.ASCII,
)
HEADER = "Requires-Dist:"


def readable(metadata: str) -> tuple[str, list[str]]:
    """*metadata* without the requirements that cannot be read, and these."""
    head, gap, description = metadata.partition("\n\n")
    kept, dropped = [], []
    for line in head.split("\n"):
        requirement = line[len(HEADER) :].strip() if line.startswith(HEADER) else None
        if requirement is None or REQUIREMENT.fullmatch(requirement):
            kept.append(line)
        else:
            dropped.append(requirement)
    return "\n".join(kept) + gap + description, dropped


def rewrite(wheel: Path, name: str, content: bytes) -> None:
    """Put *content* in the place of the file *name* of *wheel*, and of its line in the record."""
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    made = wheel.with_suffix(".made")
    with zipfile.ZipFile(wheel) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as new:
        for entry in old.infolist():
            data = content if entry.filename == name else old.read(entry)
            if entry.filename == name.replace("/METADATA", "/RECORD"):
                lines = data.decode().splitlines()
                own = f"{name},sha256={digest},{len(content)}"
                data = "".join(f"{own if line.startswith(f'{name},') else line}\n" for line in lines).encode()
            new.writestr(entry, data, zipfile.ZIP_DEFLATED)
    made.replace(wheel)


def main() -> None:
    """Rewrite the wheels that need it, and say what was taken out."""
    for wheel in map(Path, sys.argv[1:]):
        with zipfile.ZipFile(wheel) as archive:
            name = next(one for one in archive.namelist() if re.fullmatch(r"[^/]+\.dist-info/METADATA", one))
            metadata = archive.read(name).decode("utf-8", "surrogateescape")
        text, dropped = readable(metadata)
        if dropped:
            rewrite(wheel, name, text.encode("utf-8", "surrogateescape"))
        for requirement in dropped:
            sys.stdout.write(f"left out of the metadata, as no installer reads it: {requirement}\n")


if __name__ == "__main__":
    main()
