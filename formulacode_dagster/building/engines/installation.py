"""Identity of this installation. Several may share a Docker daemon, and each cleans up its own builds."""

from __future__ import annotations

import uuid
from contextlib import suppress
from pathlib import Path

from formulacode_dagster.models.errors import ConfigurationError

_FILE = "installation"


def installation_id(home: Path) -> str:
    """The name that *home* was given when it was first asked for; it is kept in a file there.

    Raises ConfigurationError when it can neither be read nor written.
    """
    file = home / _FILE
    try:
        home.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError), file.open("x", encoding="ascii") as made:
            made.write(uuid.uuid4().hex[:16])
        return file.read_text(encoding="ascii").strip()
    except OSError as error:
        raise ConfigurationError(
            f"cannot read or write {file}", why=str(error), remedy="Fix its permissions, or set FC_HOME"
        ) from error
