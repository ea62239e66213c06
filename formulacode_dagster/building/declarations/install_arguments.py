"""Arguments of the commands that install: pip and uv, conda and its like, apt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

_SHORT = {"apt": frozenset("acot"), "conda": frozenset("cfnpr"), "pip": frozenset("CPbcefioprtw")}
"""Short options with a value."""
_LONG = frozenset(
    {
        "abi",
        "build",
        "build-constraint",
        "build-option",
        "cache-dir",
        "cert",
        "channel",
        "client-cert",
        "clone",
        "config-file",
    }
    | {"config-setting", "config-settings", "constraint", "default-index", "default-release", "directory", "editable"}
    | {"exclude-newer", "exists-action", "extra", "extra-index-url", "file", "find-links", "global-option", "group"}
    | {"implementation", "index", "index-strategy", "index-url", "install-option", "keyring-provider", "link-mode"}
    | {"log", "name", "no-binary", "only-binary", "only-group", "option", "outdir", "override", "platform", "prefix"}
    | {"prerelease", "progress-bar", "project", "proxy", "python", "python-platform", "python-version", "report"}
    | {"requirement", "requirements", "resolution", "retries", "root", "root-prefix", "solver", "src", "subdir"}
    | {"target", "target-release", "timeout", "trusted-host", "upgrade-package", "upgrade-strategy", "use-deprecated"}
    | {"use-feature", "wheel-dir"}
)
_ALIASES = {
    "--config-setting": "-C",
    "--config-settings": "-C",
    "--constraint": "-c",
    "--editable": "-e",
    "--file": "-f",
    "--requirement": "-r",
    "--requirements": "-r",
}


def install_arguments(words: Iterable[str], *, tool: str = "pip") -> Iterator[tuple[str, str]]:
    """Yield each word after `install` with the option whose value it is, `` for none: `-r`, `-e`, `-f`, `--group` …

    Options without a value are left out; *tool* is `pip`, `conda` or `apt`, whose short options differ.
    """
    rest = iter(words)
    for word in rest:
        if word == "-" or not word.startswith("-"):
            yield "", word
            continue
        if word.startswith("--"):
            option, is_joined, value = word.partition("=")
            takes_value = option[2:] in _LONG
        else:
            # short options may be joined: `-qU`, `-ve .`, `-rrequirements.txt`
            place = next((place for place, letter in enumerate(word) if letter in _SHORT[tool]), 0)
            option, value, takes_value = f"-{word[place]}", word[place + 1 :].removeprefix("="), place > 0
            is_joined = value
        if takes_value:
            yield _ALIASES.get(option, option), value if is_joined else next(rest, "")
