"""The settings as documents: `.env.example`, and the table of the documentation. `make settings` rewrites the file."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from pydantic import SecretStr

from .setting_types import is_secret
from .settings import Settings

_HEAD = "# Every setting of the platform. Copy to .env and fill in what you use; an empty line keeps the default."


@dataclass(frozen=True)
class Setting:
    """One environment variable; a secret has no default, and its value is never shown."""

    name: str
    default: str
    meaning: str
    secret: bool

    @property
    def description(self) -> str:
        """The meaning, with a remark for secrets."""
        return f"{self.meaning} (secret)" if self.secret else self.meaning


def _text(value: object) -> str:
    if value is None or isinstance(value, SecretStr):
        return ""
    if isinstance(value, float):
        return f"{value:g}"
    return ",".join(value) if isinstance(value, tuple) else str(value)


SETTINGS = tuple(
    Setting(str(field.alias), _text(field.default), str(field.description), is_secret(field))
    for field in Settings.model_fields.values()
)
"""All of them, in the order of the model."""


def env_example() -> str:
    """The content of `.env.example`."""
    return "\n".join(
        [f"{_HEAD}\n", *(f"# {setting.description}\n#{setting.name}={setting.default}\n" for setting in SETTINGS)]
    )


def settings_table() -> str:
    """A Markdown table of all settings: name, default, meaning."""
    rows = [
        f"| `{setting.name}` | {f'`{setting.default}`' if setting.default else ''} | {setting.description} |"
        for setting in SETTINGS
    ]
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(env_example())
